package publictexts

import (
	"strings"
	"testing"
)

const root = "../.."

func TestThePageHasTextsOfEveryKind(t *testing.T) {
	groups, err := Gather(root)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]map[string]string{}
	for _, g := range groups {
		of[g.Title] = map[string]string{}
		for _, text := range g.Texts {
			of[g.Title][text.Of] += text.Text + "\n"
		}
	}
	for _, want := range []struct{ title, of, text string }{
		{"Metrics", "`windlass_scheduler_queue_length`", "instance"},
		{"Commands", "`windlass`", "functions"},
		{"Commands", "`windlass deploy --help`", "manifest"},
		{"Commands", "`windlass gateway --listen`", "address"},
		{"Commands", "`windlass sim burst`", "decider"},
		{"Alerts", "WindlassTickLag, description", "ticks"},
		{"Dashboards", "Windlass / Overview, Waiting", "wait for an instance"},
		{"Conditions and Events", "api/v1alpha1/conditions.go", "the function can be called; an instance of it has started"},
		{"Problems", "503 NoCapacity, what to do", "nodes"},
		{"Chart values", "`gateway.replicas`", "gateways"},
		{"Fields of the API", "Function.spec.scaling.minInstances", "maxInstances"},
	} {
		if !strings.Contains(of[want.title][want.of], want.text) {
			t.Errorf("%s: %s is %q, without %q", want.title, want.of, of[want.title][want.of], want.text)
		}
	}
}

func TestAFolderWithoutSourcesIsAnError(t *testing.T) {
	if groups, err := Gather(t.TempDir()); err == nil {
		t.Errorf("it has %v", groups)
	}
}

func TestWrite(t *testing.T) {
	var page strings.Builder
	err := Write(&page, []Group{
		{"Metrics", []Text{{"a", "One."}, {"b", "Two,\nin lines."}, {"c", "One."}}},
		{"Alerts", []Text{{"d", "One."}, {"e", "Three."}}},
	})
	want := "# Public texts\n\n## Metrics\n\n- a: One.\n- b: Two,\n  in lines.\n\n## Alerts\n\n- e: Three.\n"
	if err != nil || page.String() != want {
		t.Errorf("it is %q (%v), want %q", page.String(), err, want)
	}
}
