//go:build apiserver

package chart

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var update = flag.Bool("update", false, "rewrite testdata and the chart's README.md")

// rules are those of an object, if it is a role.
func rules(t *testing.T, object unstructured.Unstructured) []rbacv1.PolicyRule {
	t.Helper()
	switch object.GetKind() {
	case "ClusterRole":
		return as[rbacv1.ClusterRole](t, object).Rules
	case "Role":
		return as[rbacv1.Role](t, object).Rules
	}
	return nil
}

func TestNoRoleGivesMoreThanItShould(t *testing.T) {
	// What lets an account become another one.
	verbs := []string{"*", "escalate", "bind", "impersonate", "approve", "sign", "deletecollection"}
	resources := []string{"*", "secrets", "pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "pods/ephemeralcontainers", "nodes/proxy",
		"serviceaccounts/token", "roles", "rolebindings", "clusterroles", "clusterrolebindings",
		"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}
	eachScenario(t, func(t *testing.T, objects []unstructured.Unstructured) {
		checked := 0
		for _, object := range objects {
			for _, rule := range rules(t, object) {
				checked++
				ofPeople := strings.HasPrefix(object.GetName(), "windlass-functions-")
				for _, verb := range rule.Verbs {
					if slices.Contains(verbs, verb) && !ofPeople {
						t.Errorf("%s has the verb %s on %v", title(object), verb, rule.Resources)
					}
				}
				for _, resource := range rule.Resources {
					if slices.Contains(resources, resource) {
						t.Errorf("%s has a rule for %s", title(object), resource)
					}
				}
				if slices.Contains(rule.APIGroups, "*") || slices.ContainsFunc(rule.NonResourceURLs, func(u string) bool { return strings.Contains(u, "*") }) {
					t.Errorf("%s has a rule for %v %v", title(object), rule.APIGroups, rule.NonResourceURLs)
				}
			}
		}
		if checked < 10 {
			t.Errorf("saw %d rules only", checked)
		}
	})
}

// TestRolesAreAsReviewed compares all rights with testdata, so that a change of
// them is seen as one.
func TestRolesAreAsReviewed(t *testing.T) {
	for file, args := range map[string][]string{"roles.txt": nil, "roles-namespaces.txt": scenarios["namespaces"]} {
		t.Run(file, func(t *testing.T) {
			var lines []string
			for _, object := range render(t, args...) {
				for _, rule := range rules(t, object) {
					lines = append(lines, title(object)+": "+ruleWords(rule))
				}
			}
			slices.Sort(lines)
			golden(t, filepath.Join("testdata", file), strings.Join(lines, "\n")+"\n")
		})
	}
}

func ruleWords(rule rbacv1.PolicyRule) string {
	what := rule.NonResourceURLs
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if group != "" {
				resource += "." + group
			}
			what = append(what, resource)
		}
	}
	words := fmt.Sprintf("%s %s", strings.Join(what, ", "), strings.Join(rule.Verbs, " "))
	if len(rule.ResourceNames) > 0 {
		words += " named " + strings.Join(rule.ResourceNames, ", ")
	}
	return words
}

// TestRightsCanBeLeftOut leaves the roles of accounts out, also those of the hook.
func TestRightsCanBeLeftOut(t *testing.T) {
	for _, object := range render(t, "--set", "rbac.create=false,rbac.aggregate=false,nodeAgent.enabled=true,nodeAgent.batchNamespaces={*}") {
		if strings.Contains(object.GetKind(), "Role") {
			t.Errorf("there is %s", title(object))
		}
	}
}

// TestBindingsLeadToRoles wants each role of an account to be bound once, to
// the account of its own component.
func TestBindingsLeadToRoles(t *testing.T) {
	eachScenario(t, func(t *testing.T, objects []unstructured.Unstructured) {
		bound := map[string]int{}
		for _, object := range objects {
			if !strings.HasSuffix(object.GetKind(), "RoleBinding") {
				continue
			}
			binding := as[rbacv1.RoleBinding](t, object)
			where := ""
			if object.GetNamespace() != "" {
				where = object.GetNamespace() + "/"
			}
			bound[binding.RoleRef.Kind+" "+where+binding.RoleRef.Name]++
			want := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: binding.RoleRef.Name}}
			if diff := cmp.Diff(want, binding.Subjects); diff != "" {
				t.Errorf("%s (-want +got):\n%s", title(object), diff)
			}
			find(t, objects, "ServiceAccount", binding.RoleRef.Name)
		}
		for _, object := range objects {
			if rules(t, object) == nil || strings.HasPrefix(object.GetName(), "windlass-functions-") {
				continue
			}
			if bound[title(object)] != 1 {
				t.Errorf("%s is bound %d times", title(object), bound[title(object)])
			}
			delete(bound, title(object))
		}
		if len(bound) > 0 {
			t.Errorf("bound but not there: %v", bound)
		}
	})
}

// golden compares a text with a file, or writes the file with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); -update rewrites it:\n%s", path, diff)
	}
}
