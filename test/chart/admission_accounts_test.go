//go:build apiserver

package chart

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/controller"
)

// account is a client with the rights of a service account of the chart, or of an
// administrator.
func (c *cluster) account(t *testing.T, name string) client.Client {
	t.Helper()
	config := c.config
	if name != "" {
		config = c.impersonate(name)
	}
	scheme, err := controller.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	all, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestS9AStolenAccountChangesNothingOfOthers tries, with the rights of each account,
// what it is there for and what would harm others.
func TestS9AStolenAccountChangesNothingOfOthers(t *testing.T) {
	c := policyCluster(t)
	admin := c.account(t, "")
	scheduler, keeper := client.NewDryRunClient(c.account(t, "windlass-scheduler")), client.NewDryRunClient(c.account(t, "windlass-controller"))

	own, foreign := functionPodIn(t, "wide-open"), functionPodIn(t, "kube-system")
	foreign.Name, foreign.Labels = "coredns", map[string]string{"k8s-app": "kube-dns"}
	for _, pod := range []*corev1.Pod{own, foreign} { // or the garbage collector takes them
		pod.OwnerReferences, pod.Spec.NodeName = nil, ""
	}
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "wide-open", Name: "hello"}}
	fn.Spec.Template.Image = "hello:1"
	denied := policyFor("kube-system", "deny-all")
	for _, object := range []client.Object{own, foreign, fn, denied} {
		eventually(t, "there is "+object.GetName(), func(ctx context.Context) (bool, error) {
			err := admin.Create(ctx, object)
			if apierrors.IsForbidden(err) {
				return false, nil // the namespace has no default account yet
			}
			return err == nil, err
		})
	}
	shipped := &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: "python3.13"}}
	shipped.Spec.Image = "ghcr.io/windlass-dev/runtime-python3.13:0.1.0"
	mend := func(change func(*v1alpha1.Function)) func(context.Context) error {
		return func(ctx context.Context) error {
			changed := fn.DeepCopy()
			change(changed)
			return keeper.Patch(ctx, changed, client.MergeFrom(fn))
		}
	}
	install := func(change func(*v1alpha1.ClusterRuntime)) func(context.Context) error {
		return func(ctx context.Context) error {
			rt := shipped.DeepCopy()
			change(rt)
			return keeper.Create(ctx, rt)
		}
	}
	keep := func(namespace, name string, change func(*networkingv1.NetworkPolicy)) func(context.Context) error {
		return func(ctx context.Context) error {
			policy := policyFor(namespace, name)
			change(policy)
			return keeper.Create(ctx, policy)
		}
	}
	same := func(*networkingv1.NetworkPolicy) {}
	eventually(t, "the policies are in force", func(ctx context.Context) (bool, error) {
		return keep("wide-open", "other", same)(ctx) != nil && keeper.Delete(ctx, foreign) != nil &&
			mend(func(f *v1alpha1.Function) { f.Spec.Template.Image = "miner:1" })(ctx) != nil &&
			install(func(r *v1alpha1.ClusterRuntime) { r.Spec.Image = "miner:1" })(ctx) != nil, nil
	})
	for name, test := range map[string]struct {
		do   func(context.Context) error
		want string // "" means allowed
	}{
		"a scheduler ends an instance":            {func(ctx context.Context) error { return scheduler.Delete(ctx, own) }, ""},
		"a scheduler deletes a pod of others":     {func(ctx context.Context) error { return scheduler.Delete(ctx, foreign) }, "only the pods of functions"},
		"the controller ends an instance":         {func(ctx context.Context) error { return keeper.Delete(ctx, own) }, ""},
		"the controller deletes a pod of others":  {func(ctx context.Context) error { return keeper.Delete(ctx, foreign) }, "only the pods of functions"},
		"the controller's NetworkPolicy":          {keep("wide-open", controller.PolicyName, same), ""},
		"a NetworkPolicy of another name":         {keep("kube-system", "other", same), "only the NetworkPolicy windlass-functions"},
		"a NetworkPolicy is lifted":               {func(ctx context.Context) error { return keeper.Delete(ctx, denied) }, "only the NetworkPolicy windlass-functions"},
		"a NetworkPolicy that selects all pods":   {keep("kube-system", controller.PolicyName, func(p *networkingv1.NetworkPolicy) { p.Spec.PodSelector = metav1.LabelSelector{} }), "must select the pods of functions"},
		"a NetworkPolicy that selects other pods": {keep("kube-system", controller.PolicyName, func(p *networkingv1.NetworkPolicy) { p.Spec.PodSelector.MatchExpressions[0].Values[0] = "dns" }), "must select the pods of functions"},
		"a finalizer":                              {mend(func(f *v1alpha1.Function) { f.Finalizers = []string{wellknown.FinalizerDrain} }), ""},
		"a finalizer of others":                    {mend(func(f *v1alpha1.Function) { f.Finalizers = []string{"example.com/stuck"} }), "only windlass.dev/drain"},
		"the image of a Function":                  {mend(func(f *v1alpha1.Function) { f.Spec.Template.Image = "miner:1" }), "only the status and the finalizer"},
		"a label of a Function":                    {mend(func(f *v1alpha1.Function) { f.Labels = map[string]string{"a": "b"} }), "only the status and the finalizer"},
		"a Runtime of the chart":                   {install(func(*v1alpha1.ClusterRuntime) {}), ""},
		"a Runtime of the chart, of another image": {install(func(r *v1alpha1.ClusterRuntime) { r.Spec.Image = "miner:1" }), "only the ClusterRuntimes of the chart's values"},
		"a Runtime of another name":                {install(func(r *v1alpha1.ClusterRuntime) { r.Name = "ruby" }), "only the ClusterRuntimes of the chart's values"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.do(t.Context())
			if test.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("refused with %v, want the policy's %q", err, test.want)
			}
			if test.want != "" {
				tellRefused(t, "S9", "F111")
			}
		})
	}
	status := fn.DeepCopy()
	status.Status.URL = "http://gateway/function/hello"
	if err := keeper.Status().Update(t.Context(), status); err != nil {
		t.Errorf("the controller cannot write a status: %v", err)
	}
	for _, name := range []string{"pods", "networkpolicies", "functions", "clusterruntimes"} {
		typeCheck(t, c, "windlass-kept-"+name)
	}
}

// policyFor is a NetworkPolicy that selects what the controller's does.
func policyFor(namespace, name string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{
				MatchLabels: map[string]string{wellknown.LabelManagedBy: wellknown.ManagedBy},
				MatchExpressions: []metav1.LabelSelectorRequirement{{
					Key: wellknown.LabelComponent, Operator: metav1.LabelSelectorOpIn, Values: []string{wellknown.ComponentFunction, wellknown.ComponentSpare},
				}},
			},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		},
	}
}
