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

// rights are verbs by account, where they hold, and resource.
type rights map[string]map[string]map[string][]string

func (r rights) add(account, where, resource string, verbs []string) {
	if r[account] == nil {
		r[account] = map[string]map[string][]string{}
	}
	if r[account][where] == nil {
		r[account][where] = map[string][]string{}
	}
	r[account][where][resource] = merged(r[account][where][resource], verbs)
}

// TestS21TheDocumentedRightsAreThoseOfTheChart compares the table in docs/security.md with
// the roles.
func TestS21TheDocumentedRightsAreThoseOfTheChart(t *testing.T) {
	if diff := cmp.Diff(rightsOfRoles(t), documentedRights(tableOfRights(t))); diff != "" {
		t.Errorf("the rights (-roles +docs/security.md):\n%s", diff)
	}
}

func TestS21EveryCellOfTheDocumentedRightsCounts(t *testing.T) {
	roles, table := rightsOfRoles(t), tableOfRights(t)
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if strings.Contains(row, asEveryAccount) || cells[3] == " nothing " {
			continue
		}
		for i := 2; i < 5; i++ {
			wrong := slices.Clone(cells)
			wrong[i] = " nothing "
			if cmp.Equal(roles, documentedRights(strings.Replace(table, row, strings.Join(wrong, "|"), 1))) {
				t.Errorf("nobody notices that %q is missing in the row %s", cells[i], row)
			}
		}
	}
	for _, unknown := range []string{
		"| stranger | cluster | `pods` | get |\n",
		"| | cluster | `pods` | delete |\n",
	} {
		if cmp.Equal(roles, documentedRights(table+unknown)) {
			t.Errorf("nobody notices the row %s", unknown)
		}
	}
}

func tableOfRights(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "| account | where | what | verbs |\n|---|---|---|---|\n")
	table, _, ends := strings.Cut(rest, "\n\n")
	if !found || !ends {
		t.Fatal("docs/security.md has no table of rights")
	}
	return table + "\n"
}

// Where rights hold.
const (
	inCluster     = "cluster"
	nearFunctions = "where functions are"
	ownNamespace  = "its own namespace"
)

// rightsOfRoles are those of all accounts that the chart can make. Functions are in another namespace
// than the release, so that a role says by its namespace where it holds.
func rightsOfRoles(t *testing.T) rights {
	t.Helper()
	all := rights{}
	for _, object := range render(t, append(scenarios["batch pods"], "--set", "watchNamespaces={shop}")...) {
		account := strings.TrimPrefix(object.GetName(), release+"-")
		if strings.HasPrefix(account, "functions-") {
			continue // what is added to the cluster's roles
		}
		where, rules := ownNamespace, []rbacv1.PolicyRule(nil)
		switch object.GetKind() {
		case "ClusterRole":
			where, rules = inCluster, as[rbacv1.ClusterRole](t, object).Rules
		case "Role":
			rules = as[rbacv1.Role](t, object).Rules
			if object.GetNamespace() == "shop" {
				where = nearFunctions
			}
		}
		for _, rule := range rules {
			if len(rule.NonResourceURLs) > 0 {
				all.add(account, where, tokenKeys, rule.Verbs)
			}
			for _, resource := range rule.Resources {
				all.add(account, where, resource, rule.Verbs)
			}
		}
	}
	return all
}

// asEveryAccount marks in the documentation what Kubernetes grants, not the chart.
const asEveryAccount = "as every account"

var (
	verb     = regexp.MustCompile(`\b(get|list|watch|create|update|patch|delete)\b`)
	resource = regexp.MustCompile("`([a-z/]+)`|" + tokenKeys)
	wherever = regexp.MustCompile(inCluster + "|" + nearFunctions + "|" + ownNamespace)
)

func documentedRights(table string) rights {
	all, account := rights{}, ""
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 {
			continue
		}
		if name, _, _ := strings.Cut(strings.TrimSpace(cells[1]), " "); name != "" {
			account = name
		}
		if strings.Contains(line, asEveryAccount) {
			continue
		}
		for _, match := range resource.FindAllStringSubmatch(cells[3], -1) {
			name := match[1]
			if name == "" {
				name = tokenKeys
			}
			for _, where := range wherever.FindAllString(cells[2], -1) {
				all.add(account, where, name, verb.FindAllString(cells[4], -1))
			}
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
