//go:build apiserver

package chart

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLifeOfARelease installs, upgrades and uninstalls the chart, step by step,
// against a real API server.
func TestLifeOfARelease(t *testing.T) {
	c := startCluster(t)
	for _, name := range []string{namespace, "team-a"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
		if _, err := c.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the namespaces have their default accounts", func(ctx context.Context) (bool, error) {
		for _, name := range []string{namespace, "team-a"} {
			if _, err := c.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{}); err != nil {
				return false, nil
			}
		}
		return true, nil
	})
	notes := c.mustHelm(t, "install", release, chartDir)
	if !strings.Contains(notes, "kubectl -n windlass port-forward service/windlass-gateway 8080:80") {
		t.Errorf("the notes do not say how to reach the gateway:\n%s", notes)
	}

	t.Run("pods are admitted at the level restricted", func(t *testing.T) { podsAreAdmitted(t, c) })
	t.Run("accounts may do what they need and no more", func(t *testing.T) { accountsAreLimited(t, c) })
	t.Run("the admission policy holds schedulers to functions", func(t *testing.T) { admissionPolicyHolds(t, c) })
	t.Run("an upgrade changes no certificate and no pod", func(t *testing.T) { upgradeChangesNothing(t, c) })
	t.Run("a Secret that was deleted is made again by the same CA", func(t *testing.T) { deletedSecretReturns(t, c) })
	t.Run("the number of etcd's members does not change in place", func(t *testing.T) {
		if _, err := c.runHelm(t, "upgrade", release, chartDir, "--set", "etcd.replicas=1"); err == nil || !strings.Contains(err.Error(), "made with 3 members") {
			t.Errorf("upgrade to one member: %v", err)
		}
	})
	t.Run("an autoscaler takes over as many gateways as there are", func(t *testing.T) { autoscalerTakesOver(t, c) })
	t.Run("agents of the old repository start during an upgrade", func(t *testing.T) { oldAgentsStart(t, c) })
	t.Run("rights can be limited to namespaces later", func(t *testing.T) { namespacesLimitRights(t, c) })
	t.Run("a namespace that is gone leaves the list", func(t *testing.T) { goneNamespaceLeaves(t, c) })
	t.Run("uninstalling leaves the CRDs only", func(t *testing.T) { uninstallLeavesCRDs(t, c) })
}

// podsAreAdmitted waits for as many pods as the workloads ask for. The
// controller manager makes them, so none is missing if all are admitted.
func podsAreAdmitted(t *testing.T, c *cluster) {
	want := map[string]int{"gateway": 2, "scheduler": 3, "controller": 2, "etcd": 3}
	got := map[string]int{}
	eventually(t, "all pods exist", func(ctx context.Context) (bool, error) {
		pods, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		clear(got)
		for _, pod := range pods.Items {
			got[pod.Labels["app.kubernetes.io/component"]]++
		}
		return cmp.Equal(want, got), nil
	})
}

// upgradeChangesNothing upgrades to the same chart and values.
func upgradeChangesNothing(t *testing.T, c *cluster) {
	before := versions(t, c)
	c.mustHelm(t, "upgrade", release, chartDir)
	if diff := cmp.Diff(before, versions(t, c)); diff != "" {
		t.Errorf("an upgrade without a change changed (-before +after):\n%s", diff)
	}
}

// versions tells for each Secret which data it holds, and for each workload
// which generation it is.
func versions(t *testing.T, c *cluster) map[string]any {
	t.Helper()
	all := map[string]any{}
	secrets, err := c.client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=windlass"})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets.Items {
		all["Secret "+secret.Name] = secret.Data
	}
	deployments, err := c.client.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, deployment := range deployments.Items {
		all["Deployment "+deployment.Name] = deployment.Generation
	}
	etcd, err := c.client.AppsV1().StatefulSets(namespace).Get(t.Context(), "windlass-etcd", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all["StatefulSet windlass-etcd"] = etcd.Generation
	if len(all) != 5+4 {
		t.Fatalf("looked at %d objects, want 5 Secrets and 4 workloads", len(all))
	}
	return all
}

func deletedSecretReturns(t *testing.T, c *cluster) {
	before := versions(t, c)
	if err := c.client.CoreV1().Secrets(namespace).Delete(t.Context(), "windlass-gateway-tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.mustHelm(t, "upgrade", release, chartDir)
	after := versions(t, c)
	const name = "Secret windlass-gateway-tls"
	if cmp.Equal(before[name], after[name]) {
		t.Error("the gateway's certificate is the deleted one")
	}
	if !cmp.Equal(before[name].(map[string][]byte)["ca.crt"], after[name].(map[string][]byte)["ca.crt"]) {
		t.Error("the CA has changed with a certificate")
	}
	delete(before, name)
	delete(after, name)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("more than the gateway's certificate has changed:\n%s", diff)
	}
}

// autoscalerTakesOver upgrades a release with many gateways to an autoscaler, and once more.
func autoscalerTakesOver(t *testing.T, c *cluster) {
	c.mustHelm(t, "upgrade", release, chartDir, "--set", "gateway.replicas=5")
	for range 2 {
		c.mustHelm(t, "upgrade", release, chartDir, "--set", "gateway.autoscaling.enabled=true")
		gateway, err := c.client.AppsV1().Deployments(namespace).Get(t.Context(), "windlass-gateway", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := *gateway.Spec.Replicas; got != 5 {
			t.Errorf("the upgrade leaves %d gateways of 5", got)
		}
	}
}

// oldAgentsStart upgrades to another repository of the agent. Until the schedulers are replaced
// they create pods with the one before, and after the next upgrade nobody does.
func oldAgentsStart(t *testing.T, c *cluster) {
	const before, after = "ghcr.io/windlass-dev/podagent", "mirror.example.com/windlass-dev/podagent"
	c.mustHelm(t, "upgrade", release, chartDir)
	for _, want := range [][]string{{before, after}, {after}} {
		c.mustHelm(t, "upgrade", release, chartDir, "--set", "agent.image.registry=mirror.example.com")
		policy, err := c.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), "windlass-scheduler-pods", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(policy.Spec.Validations, func(v admissionregistrationv1.Validation) bool { return strings.Contains(v.Message, "agent.image") })
		for _, repository := range []string{before, after} {
			for _, end := range []string{":", "@"} {
				allowed := strings.Contains(policy.Spec.Validations[i].Expression, "startsWith('"+repository+end+"')")
				if allowed != slices.Contains(want, repository) {
					t.Errorf("an agent of %s%s may start: %v, want those of %v", repository, end, allowed, want)
				}
			}
		}
	}
}

// goneNamespaceLeaves deletes a namespace that is still listed, and then takes it off the list.
func goneNamespaceLeaves(t *testing.T, c *cluster) {
	const both, one = "watchNamespaces={team-a,team-b}", "watchNamespaces={team-a}"
	namespaces := c.client.CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-b"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.mustHelm(t, "upgrade", release, chartDir, "--set", both)
	if err := namespaces.Delete(t.Context(), "team-b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := namespaces.Get(ctx, "team-b", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if _, err := c.runHelm(t, "upgrade", release, chartDir, "--set", both); err == nil || !strings.Contains(err.Error(), `"team-b" not found`) {
		t.Errorf("an upgrade with a namespace that is gone: %v", err)
	}
	c.mustHelm(t, "upgrade", release, chartDir, "--set", one)
}
