package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
)

// claimsOn are the functions that ask for each of the hosts that a function asks for,
// itself among them.
func (r *reconciler) claimsOn(ctx context.Context, f *v1alpha1.Function) (map[string][]address.Claim, error) {
	if len(f.Spec.Expose.Hosts) == 0 {
		return nil, nil
	}
	claims := make(map[string][]address.Claim, len(f.Spec.Expose.Hosts))
	for _, host := range f.Spec.Expose.Hosts {
		var functions v1alpha1.FunctionList
		if err := r.client.List(ctx, &functions, client.MatchingFields{indexFunctionHost: string(host)}); err != nil {
			return nil, fmt.Errorf("cannot list the functions that ask for the host %s: %w", host, err)
		}
		for i := range functions.Items {
			other := &functions.Items[i]
			claims[string(host)] = append(claims[string(host)], address.Claim{Key: other.Key(), Created: other.CreationTimestamp.Time})
		}
	}
	return claims, nil
}

// requestedHosts are the hosts that a function asks for. A function that is being deleted asks
// for none.
func requestedHosts(o client.Object) []string {
	f := o.(*v1alpha1.Function)
	if !f.DeletionTimestamp.IsZero() {
		return nil
	}
	hosts := make([]string, 0, len(f.Spec.Expose.Hosts))
	for _, host := range f.Spec.Expose.Hosts {
		hosts = append(hosts, string(host))
	}
	return hosts
}

// functionsOfSameHosts are the functions that ask for a host that a function asks for, or did.
func functionsOfSameHosts(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, host := range o.(*v1alpha1.Function).Spec.Expose.Hosts {
			var functions v1alpha1.FunctionList
			if err := reader.List(ctx, &functions, client.MatchingFields{indexFunctionHost: string(host)}); err != nil {
				continue
			}
			for i := range functions.Items {
				key := client.ObjectKeyFromObject(&functions.Items[i])
				if key != (types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}) {
					requests = append(requests, reconcile.Request{NamespacedName: key})
				}
			}
		}
		return requests
	}
}

// hostStates are what the function has of the hosts that it asks for.
func hostStates(in input) []v1alpha1.HostStatus {
	if !in.function.DeletionTimestamp.IsZero() {
		return nil
	}
	var states []v1alpha1.HostStatus
	for _, host := range in.function.Spec.Expose.Hosts {
		states = append(states, v1alpha1.HostStatus{
			Hostname: host, State: in.hosts.State(in.function.Key(), string(host), in.claims[string(host)]),
		})
	}
	return states
}

// hostsCondition reports the most serious problem of the function's hosts, or that it has all
// that it asks for. It has no status for a function that asks for none and has one below the
// domain.
func hostsCondition(in input) metav1.Condition {
	said := metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted}
	var messages []string
	wrong := func(reason, message string) {
		if len(messages) == 0 {
			said.Status, said.Reason = metav1.ConditionFalse, reason
		}
		messages = append(messages, message)
	}
	states := hostStates(in)
	for _, s := range states {
		if s.State == v1alpha1.HostNotPermitted {
			wrong(v1alpha1.ReasonHostNotPermitted, hostNotPermitted(in, string(s.Hostname)))
		}
	}
	for _, s := range states {
		if s.State == v1alpha1.HostConflict {
			wrong(v1alpha1.ReasonHostConflict, hostConflict(in, string(s.Hostname)))
		}
	}
	if message := hostTooLong(in); message != "" {
		wrong(v1alpha1.ReasonHostTooLong, message)
	}
	switch {
	case len(messages) > 0:
		said.Message = strings.Join(messages, "; ")
	case len(states) > 0:
		said.Message = "calls to the hosts of spec.expose reach the function"
	default:
		return metav1.Condition{}
	}
	return said
}

func hostNotPermitted(in input, host string) string {
	switch urls := in.hosts.URLs; {
	case urls.Hosts().Below(host):
		return fmt.Sprintf("%s is below the domain of functions' hosts; use another host", host)
	case urls.Reserved(host):
		return fmt.Sprintf("%s is the host of the gateways, or the domain of functions' hosts; use another host", host)
	}
	return fmt.Sprintf("the namespace %s may not have the host %s; the administrator can grant it with tenancy.namespaces.%[1]s.hosts in the chart's values",
		in.function.Namespace, host)
}

// hostConflict names the older function only if it is in the same namespace: readers of the
// message may not be allowed to see others.
func hostConflict(in input, host string) string {
	owner, _ := in.hosts.Owner(host, in.claims[host])
	if owner.Namespace != in.function.Namespace {
		return fmt.Sprintf("an older function of another namespace has the host %s; use another host", host)
	}
	return fmt.Sprintf("the function %s is older and has the host %s; remove it there, or use another host", owner.Name, host)
}

// hostTooLong says whether the function or some of its tags have no host below the domain; ""
// if all have one.
func hostTooLong(in input) string {
	hosts, key := in.hosts.URLs.Hosts(), in.function.Key()
	if hosts == (address.Hosts{}) {
		return ""
	}
	const why = "because a label of it would be longer than 63 bytes or begin with xn--"
	if _, ok := hosts.Of(key, ""); !ok {
		return "the function has no host, " + why + "; call it by its path"
	}
	var tags []string
	for _, target := range in.function.Spec.Traffic {
		if _, ok := hosts.Of(key, target.Tag); !ok {
			tags = append(tags, target.Tag)
		}
	}
	if len(tags) == 0 {
		return ""
	}
	slices.Sort(tags)
	return fmt.Sprintf("tags have no host, %s, and need the header Windlass-Tag: %s", why, strings.Join(tags, ", "))
}
