package podspec

import (
	"fmt"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// TestS6EachNamespaceHasItsUser looks at pods of functions and at spare ones, which a
// function of the same namespace takes as they are.
func TestS6EachNamespaceHasItsUser(t *testing.T) {
	for name, test := range map[string]struct {
		ids   UserIDs
		apart bool
	}{"none": {UserIDs{}, false}, "some": {UserIDs{Base: 1e9, Count: 8e8}, true}} {
		t.Run(name, func(t *testing.T) {
			users := map[int64]bool{}
			for _, namespace := range []string{"team-a", "team-b"} {
				in, waiting := input(&v1alpha1.Function{Spec: v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "hello"}}}), spareInput()
				in.Config.UserIDs, in.Function.Namespace = test.ids, namespace
				waiting.Config.UserIDs, waiting.Function.Namespace = test.ids, namespace
				pod, err := Pod(in)
				if err != nil {
					t.Fatal(err)
				}
				spare, err := Spare(waiting)
				if err != nil {
					t.Fatal(err)
				}
				user := userOf(t, pod)
				if got := userOf(t, spare); got != user {
					t.Errorf("a spare instance in %s has the user %d, a function %d", namespace, got, user)
				}
				users[user] = true
			}
			if apart := len(users) == 2; apart != test.apart || !test.apart && !users[UserID] {
				t.Errorf("two namespaces have the users %v", users)
			}
		})
	}
}

// userOf is the user of a pod's function. Its agent must have another, and both the group
// that images know.
func userOf(t *testing.T, pod *corev1.Pod) int64 {
	t.Helper()
	agent, function := pod.Spec.Containers[0].SecurityContext, pod.Spec.Containers[1].SecurityContext
	if *agent.RunAsUser != AgentUserID || *function.RunAsUser == AgentUserID || *pod.Spec.SecurityContext.RunAsUser != *function.RunAsUser {
		t.Errorf("the users of pod, agent and function are %d, %d and %d", *pod.Spec.SecurityContext.RunAsUser, *agent.RunAsUser, *function.RunAsUser)
	}
	if *agent.RunAsGroup != GroupID || *function.RunAsGroup != GroupID {
		t.Errorf("the groups of agent and function are %d and %d", *agent.RunAsGroup, *function.RunAsGroup)
	}
	return *function.RunAsUser
}

// TestS6NamespacesShareAUserByChanceOnly counts pairs of 1,000 namespaces that share one,
// and wants about as many as the documentation says: n*n/(2*Count).
func TestS6NamespacesShareAUserByChanceOnly(t *testing.T) {
	const namespaces = 1000
	for _, ids := range []UserIDs{{Base: 1e9, Count: 8e8}, {Base: 1 << 16, Count: 10_000}, {Base: 1 << 16, Count: 1000}, {Base: 70_000, Count: 1}} {
		pairs, seen := 0, map[int64]int{}
		for i := range namespaces {
			user := ids.Of(fmt.Sprintf("team-%d", i))
			if user < ids.Base || user >= ids.Base+ids.Count {
				t.Fatalf("%d is not one of %+v", user, ids)
			}
			pairs += seen[user]
			seen[user]++
		}
		want := float64(namespaces) * (namespaces - 1) / 2 / float64(ids.Count)
		if math.Abs(float64(pairs)-want) > 4*math.Sqrt(want)+1e-3 {
			t.Errorf("%+v: %d pairs of namespaces share a user, want about %.4f", ids, pairs, want)
		}
	}
}

func TestS6UsersOfOthersAreRefused(t *testing.T) {
	for want, ids := range map[string]UserIDs{
		"1000 and 5 ":           {Base: 1000, Count: 5},
		"65532 and 1 ":          {Base: UserID, Count: 1},
		"1000000000 and 0 ":     {Base: 1e9},
		"2147483647 and 2 ":     {Base: math.MaxInt32, Count: 2},
		"choose one of the two": {Base: 1e9, Count: 8e8},
	} {
		err := ids.Validate(want == "choose one of the two")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error that says %q", ids, err, want)
		}
	}
	for _, ids := range []UserIDs{{}, {Base: 1 << 16, Count: 1}, {Base: math.MaxInt32, Count: 1}} {
		if err := ids.Validate(false); err != nil {
			t.Errorf("%+v: %v", ids, err)
		}
	}
}
