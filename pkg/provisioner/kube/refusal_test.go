package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestM9WhatARefusalOfTheAPIMeans(t *testing.T) {
	pods := corev1.Resource("pods")
	terminating := apierrors.NewForbidden(pods, "p", errors.New("unable to create new content"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, c := range map[string]struct {
		err     error
		passing bool
		delay   time.Duration
		code    string
		message string
	}{
		"quota":           {err: apierrors.NewForbidden(pods, "p", errors.New("exceeded quota: small, requested: pods=1")), code: v1alpha1.ReasonQuotaExceeded, message: "quota of the namespace shop allows no further instance: exceeded quota: small"},
		"quota of limits": {err: apierrors.NewForbidden(pods, "p", errors.New("failed quota: small: must specify limits.cpu")), code: v1alpha1.ReasonQuotaExceeded, message: "must specify limits.cpu"},
		"policy":          {err: apierrors.NewForbidden(pods, "p", errors.New(`violates PodSecurity "restricted:latest"`)), code: v1alpha1.ReasonPodRefused, message: "refused the pod: violates"},
		"ending":          {err: terminating, code: v1alpha1.ReasonPodRefused, message: "shop is being deleted"},
		"no namespace":    {err: apierrors.NewNotFound(corev1.Resource("namespaces"), "shop"), code: v1alpha1.ReasonPodRefused, message: "shop does not exist"},
		"invalid":         {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), code: v1alpha1.ReasonPodRefused, message: "refused the pod"},
		"busy":            {err: apierrors.NewTooManyRequests("slow down", 3), passing: true, delay: 3 * time.Second, code: v1alpha1.ReasonClusterUnavailable, message: "slow down"},
		"internal":        {err: apierrors.NewInternalError(errors.New("failed calling webhook")), passing: true, code: v1alpha1.ReasonStartFailed, message: "failed calling webhook"},
		"conflict":        {err: apierrors.NewConflict(corev1.Resource("resourcequotas"), "q", errors.New("changed")), passing: true, code: v1alpha1.ReasonStartFailed, message: "changed"},
		"unavailable":     {err: apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "post", pods, "p", "down", 0, true), passing: true, code: v1alpha1.ReasonClusterUnavailable, message: "unable to handle"},
		"no answer":       {err: fmt.Errorf("post: %w", context.DeadlineExceeded), passing: true, code: v1alpha1.ReasonClusterUnavailable, message: "did not answer in time"},
		"etcd is away":    {err: apierrors.NewInternalError(errors.New("etcdserver: request timed out")), passing: true, code: v1alpha1.ReasonClusterUnavailable, message: "etcdserver"},
		"no permission":   {err: apierrors.NewUnauthorized("the token has expired"), passing: true, code: v1alpha1.ReasonClusterUnavailable, message: "has expired"},
		"no connection":   {err: errors.New("connection refused"), passing: true, code: v1alpha1.ReasonClusterUnavailable, message: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			got := refusalOf(c.err, "shop")
			if got.transient != c.passing || got.delay != c.delay || got.code != c.code || !strings.Contains(got.reason, c.message) {
				t.Errorf("got %+v, want passing %v, delay %v, code %s, words %q", got, c.passing, c.delay, c.code, c.message)
			}
		})
	}
}
