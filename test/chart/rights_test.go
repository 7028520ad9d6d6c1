//go:build apiserver

package chart

import (
	"context"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// right is something that an account may or may not do.
type right struct {
	verb, group, resource, subresource, namespace, name string
	path                                                string
}

func (r right) String() string {
	if r.path != "" {
		return r.verb + " " + r.path
	}
	resource := r.resource
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	where := "everywhere"
	if r.namespace != "" {
		where = "in " + r.namespace
	}
	return fmt.Sprintf("%s %s.%s %q %s", r.verb, resource, r.group, r.name, where)
}

// may asks the API server.
func (c *cluster) may(t *testing.T, account string, r right) bool {
	t.Helper()
	spec := authorizationv1.SubjectAccessReviewSpec{
		User:   fmt.Sprintf("system:serviceaccount:%s:%s", namespace, account),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	if r.path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: r.verb, Path: r.path}
	} else {
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource, Namespace: r.namespace, Name: r.name,
		}
	}
	answer, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Allowed
}

// expect waits until an account has a right, or has it no longer: the API
// server hears of a changed role a moment later.
func (c *cluster) expect(t *testing.T, account string, want bool, rights ...right) {
	t.Helper()
	for _, r := range rights {
		words := map[bool]string{true: "may", false: "may not"}
		eventually(t, fmt.Sprintf("%s %s %s", account, words[want], r), func(context.Context) (bool, error) {
			return c.may(t, account, r) == want, nil
		})
	}
}

func accountsAreLimited(t *testing.T, c *cluster) {
	c.expect(t, "windlass-gateway", true,
		right{verb: "watch", group: "windlass.dev", resource: "functions"})
	c.expect(t, "windlass-scheduler", true,
		right{verb: "watch", group: "windlass.dev", resource: "functions"},
		right{verb: "list", group: "windlass.dev", resource: "clusterruntimes"},
		right{verb: "list", resource: "nodes"},
		right{verb: "watch", resource: "namespaces"},
		right{verb: "watch", resource: "pods"},
		right{verb: "create", resource: "pods", namespace: "team-a"},
		right{verb: "delete", resource: "pods", namespace: "team-a"},
		right{verb: "get", path: "/openid/v1/jwks"},
		right{verb: "get", path: "/.well-known/openid-configuration"})
	c.expect(t, "windlass-controller", true,
		right{verb: "patch", group: "windlass.dev", resource: "functions", subresource: "status", namespace: "team-a"},
		right{verb: "update", group: "windlass.dev", resource: "functions", subresource: "finalizers", namespace: "team-a"},
		right{verb: "create", group: "windlass.dev", resource: "clusterruntimes"},
		right{verb: "patch", group: "windlass.dev", resource: "clusterruntimes", subresource: "status"},
		right{verb: "delete", resource: "pods", namespace: "team-a"},
		right{verb: "patch", group: "networking.k8s.io", resource: "networkpolicies", namespace: "team-a"},
		right{verb: "watch", group: "policy", resource: "poddisruptionbudgets", namespace: "team-a"},
		right{verb: "create", group: "events.k8s.io", resource: "events", namespace: "team-a"},
		right{verb: "create", resource: "events", namespace: namespace},
		right{verb: "list", group: "discovery.k8s.io", resource: "endpointslices", namespace: namespace},
		right{verb: "create", group: "coordination.k8s.io", resource: "leases", namespace: namespace},
		right{verb: "update", group: "coordination.k8s.io", resource: "leases", namespace: namespace, name: "windlass-controller"})

	for _, account := range []string{"windlass-gateway", "windlass-scheduler", "windlass-controller", "windlass-etcd"} {
		c.expect(t, account, false,
			right{verb: "get", resource: "secrets", namespace: namespace},
			right{verb: "get", resource: "secrets", namespace: "team-a"},
			right{verb: "create", resource: "pods", subresource: "exec", namespace: "team-a"},
			right{verb: "create", resource: "serviceaccounts", subresource: "token", namespace: "team-a"},
			right{verb: "impersonate", resource: "users"},
			right{verb: "update", resource: "nodes"},
			right{verb: "create", group: "apps", resource: "deployments", namespace: "team-a"})
	}
	c.expect(t, "windlass-gateway", false,
		right{verb: "list", resource: "pods"},
		right{verb: "update", group: "windlass.dev", resource: "functions", namespace: "team-a"})
	c.expect(t, "windlass-scheduler", false,
		right{verb: "update", resource: "pods", namespace: "team-a"},
		right{verb: "patch", group: "windlass.dev", resource: "functions", subresource: "status", namespace: "team-a"},
		right{verb: "create", resource: "events", namespace: "team-a"})
	c.expect(t, "windlass-controller", false,
		right{verb: "create", resource: "pods", namespace: "team-a"},
		right{verb: "delete", group: "windlass.dev", resource: "functions", namespace: "team-a"},
		right{verb: "update", group: "coordination.k8s.io", resource: "leases", namespace: namespace, name: "another"},
		right{verb: "list", group: "discovery.k8s.io", resource: "endpointslices", namespace: "team-a"})
}

func namespacesLimitRights(t *testing.T, c *cluster) {
	c.mustHelm(t, "upgrade", release, chartDir, "--set", "watchNamespaces={team-a}")
	for account, rights := range map[string][]right{
		"windlass-gateway": {{verb: "list", group: "windlass.dev", resource: "functions"}},
		"windlass-scheduler": {
			{verb: "list", group: "windlass.dev", resource: "functions"},
			{verb: "create", resource: "pods"}, {verb: "delete", resource: "pods"}},
		"windlass-controller": {
			{verb: "patch", group: "windlass.dev", resource: "functions"},
			{verb: "delete", resource: "pods"},
			{verb: "create", group: "networking.k8s.io", resource: "networkpolicies"}},
	} {
		for _, r := range rights {
			r.namespace = "wide-open"
			c.expect(t, account, false, r)
			r.namespace = "team-a"
			c.expect(t, account, true, r)
		}
	}
	c.expect(t, "windlass-scheduler", true, right{verb: "list", resource: "pods"}, right{verb: "list", resource: "nodes"})
}

// uninstallLeavesCRDs uninstalls with the hooks. No pod can run here, so the
// test says in the cleanup's place that it has succeeded.
func uninstallLeavesCRDs(t *testing.T, c *cluster) {
	done := make(chan error, 1)
	go func() {
		_, err := c.runHelm(t, "uninstall", release)
		done <- err
	}()
	finishCleanup(t, c)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	kubectl := binary(t, "kubectl")
	var left string
	eventually(t, "only the CRDs are left", func(context.Context) (bool, error) {
		out, stderr, err := run(t, kubectl, "--kubeconfig", c.kubeconfig, "get", "--all-namespaces", "-o", "name", "--ignore-not-found",
			"-l", "app.kubernetes.io/instance=windlass", everyKind)
		if err != nil {
			return false, fmt.Errorf("%w: %s", err, stderr)
		}
		left = out
		return out == "customresourcedefinition.apiextensions.k8s.io/clusterruntimes.windlass.dev\n"+
			"customresourcedefinition.apiextensions.k8s.io/functionrevisions.windlass.dev\n"+
			"customresourcedefinition.apiextensions.k8s.io/functions.windlass.dev\n", nil
	})
	if t.Failed() {
		t.Logf("left are:\n%s", left)
	}
	c.mustHelm(t, "install", release, chartDir, "-f", chartDir+"/values-dev.yaml")
	c.mustHelm(t, "uninstall", release, "--no-hooks")
}

// everyKind is every kind that the chart renders.
const everyKind = "crd,deployments,statefulsets,jobs,pods,services,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles," +
	"clusterrolebindings,networkpolicies,poddisruptionbudgets,horizontalpodautoscalers,ingresses,persistentvolumeclaims," +
	"validatingadmissionpolicies,validatingadmissionpolicybindings"

// finishCleanup waits for the cleanup's pod, checks what it could do, and marks
// it as succeeded.
func finishCleanup(t *testing.T, c *cluster) {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, "the cleanup's pod exists", func(ctx context.Context) (bool, error) {
		pods, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=windlass-cleanup"})
		if err != nil || len(pods.Items) == 0 {
			return false, err
		}
		pod = &pods.Items[0]
		return true, nil
	})
	c.expect(t, "windlass-cleanup", true,
		right{verb: "delete", group: "windlass.dev", resource: "clusterruntimes"},
		right{verb: "patch", group: "windlass.dev", resource: "functions", namespace: "team-a"},
		right{verb: "delete", resource: "pods", namespace: "team-a"},
		right{verb: "delete", group: "networking.k8s.io", resource: "networkpolicies", namespace: "team-a"})
	c.expect(t, "windlass-cleanup", false,
		right{verb: "delete", group: "windlass.dev", resource: "functions", namespace: "team-a"},
		right{verb: "get", resource: "secrets", namespace: namespace},
		right{verb: "delete", resource: "pods", namespace: "wide-open"})
	// The rest of the release, and with it the controller's rights, is gone
	// already, so that nothing makes again what the cleanup removes.
	c.expect(t, "windlass-controller", false, right{verb: "create", group: "windlass.dev", resource: "clusterruntimes"})
	pod.Status.Phase = corev1.PodSucceeded
	if _, err := c.client.CoreV1().Pods(namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
