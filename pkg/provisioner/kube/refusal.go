package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// refusal is what the API's error about the creation of a pod means.
type refusal struct {
	// transient says that trying again may help, not before the delay.
	transient bool
	delay     time.Duration
	// mayExist says that the API may have created the pod nevertheless.
	mayExist bool
	// code and reason are for the Exit if it is not tried again.
	code   string
	reason string
}

// refusalOf classifies an error of the API.
func refusalOf(err error, namespace string) refusal {
	message := plainMessage(err)
	final := func(code, reason string) refusal { return refusal{code: code, reason: reason} }
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return final(v1alpha1.ReasonPodRefused, fmt.Sprintf("the namespace %s is being deleted", namespace))
	case apierrors.IsForbidden(err) && aboutQuota(message):
		return final(v1alpha1.ReasonQuotaExceeded, fmt.Sprintf("the quota of the namespace %s allows no further instance: %s", namespace, message))
	case apierrors.IsNotFound(err):
		return final(v1alpha1.ReasonPodRefused, fmt.Sprintf("the namespace %s does not exist, or something that the pod names: %s", namespace, message))
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err):
		return final(v1alpha1.ReasonPodRefused, "the cluster refused the pod: "+message)
	}
	r := refusal{transient: true, mayExist: mayHaveCreated(err), code: v1alpha1.ReasonStartFailed, reason: "the pod could not be created: " + message}
	if unavailable(err, message) {
		r.code, r.reason = v1alpha1.ReasonClusterUnavailable, "the Kubernetes API cannot be asked for the pod: "+message
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		r.delay = time.Duration(seconds) * time.Second
	}
	return r
}

// result is what a request that is not tried again counts as.
func (r refusal) result() string {
	if r.code == v1alpha1.ReasonClusterUnavailable {
		return resultUnavailable
	}
	return resultRefused
}

// mayHaveCreated reports whether a request that ended with an error may have created what it asked
// for: it had a connection, and the API did not turn it away unread.
func mayHaveCreated(err error) bool {
	var network *net.OpError
	unconnected := errors.As(err, &network) && network.Op == "dial"
	return !unconnected && !apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err)
}

// unavailable reports whether an error is about the API and not about the pod: the API was not
// reached, did not answer, cannot work now, or does not accept the scheduler's own token. If a
// webhook cannot be called, that is the cluster's decision about these pods.
func unavailable(err error, message string) bool {
	switch {
	case !answered(err):
		return true
	case apierrors.IsInternalError(err):
		return !strings.Contains(message, "webhook")
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err)
}

// answered reports whether an error is an answer of the API.
func answered(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer)
}

func aboutQuota(message string) bool {
	return strings.Contains(message, "exceeded quota") || strings.Contains(message, "failed quota")
}

// plainMessage are the API's message without the pod's name, which the reader
// never chose.
func plainMessage(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the Kubernetes API did not answer in time"
	}
	message := err.Error()
	if _, rest, found := strings.Cut(message, " is forbidden: "); found {
		return rest
	}
	if _, rest, found := strings.Cut(message, " is invalid: "); found {
		return rest
	}
	return message
}

// retryDelay is the pause after that many attempts, at most most.
func retryDelay(attempts int, most time.Duration) time.Duration {
	return min(100*time.Millisecond<<min(attempts, 10), most)
}
