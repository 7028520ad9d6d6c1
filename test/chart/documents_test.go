//go:build apiserver

package chart

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// tokenKeys is how the documentation names the paths at which the API server publishes them.
const tokenKeys = "the public keys of tokens"

// TestS21TheDocumentedRightsAreThoseOfTheChart compares the table in docs/security.md with
// the roles, by account and resource.
func TestS21TheDocumentedRightsAreThoseOfTheChart(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "| account | where | what | verbs |\n")
	table, _, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatal("docs/security.md has no table of rights")
	}
	for account, want := range rightsOfRoles(t) {
		if diff := cmp.Diff(want, documentedRights(table)[account]); diff != "" {
			t.Errorf("the rights of %s (-roles +docs/security.md):\n%s", account, diff)
		}
	}
}

// rightsOfRoles are verbs by account and resource.
func rightsOfRoles(t *testing.T) map[string]map[string][]string {
	t.Helper()
	all := map[string]map[string][]string{"gateway": {}, "scheduler": {}, "controller": {}, "cleanup": {}}
	for _, object := range render(t) {
		if object.GetKind() != "ClusterRole" && object.GetKind() != "Role" {
			continue
		}
		of, ok := all[strings.TrimPrefix(object.GetName(), release+"-")]
		if !ok {
			continue // what is added to the cluster's roles
		}
		var rules []rbacv1.PolicyRule
		if object.GetKind() == "ClusterRole" {
			rules = as[rbacv1.ClusterRole](t, object).Rules
		} else {
			rules = as[rbacv1.Role](t, object).Rules
		}
		for _, rule := range rules {
			if len(rule.NonResourceURLs) > 0 {
				of[tokenKeys] = merged(of[tokenKeys], rule.Verbs)
			}
			for _, resource := range rule.Resources {
				of[resource] = merged(of[resource], rule.Verbs)
			}
		}
	}
	return all
}

var (
	verb     = regexp.MustCompile(`\b(get|list|watch|create|update|patch|delete)\b`)
	resource = regexp.MustCompile("`([a-z/]+)`|" + tokenKeys)
)

func documentedRights(table string) map[string]map[string][]string {
	all, account := map[string]map[string][]string{}, ""
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 {
			continue
		}
		if name, _, _ := strings.Cut(strings.TrimSpace(cells[1]), " "); name != "" {
			account = name
			all[account] = map[string][]string{}
		}
		for _, match := range resource.FindAllStringSubmatch(cells[3], -1) {
			name := match[1]
			if name == "" {
				name = tokenKeys
			}
			all[account][name] = merged(all[account][name], verb.FindAllString(cells[4], -1))
		}
	}
	return all
}

func merged(lists ...[]string) []string {
	set := map[string]bool{}
	for _, list := range lists {
		for _, item := range list {
			set[item] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
