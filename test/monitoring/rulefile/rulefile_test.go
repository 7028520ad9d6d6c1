package rulefile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const file = `groups:
  - name: g
    interval: 30s
    rules:
      - alert: Slow
        expr: |-
          sum(rate(a_total[5m])) / sum(rate(b_total[10m])) > 5
        for: 15m
        labels: {severity: warning}
        annotations:
          summary: 'for 15m, {{ with query "increase(a_total[1h])" }}{{ end }}'
      - record: a:rate
        expr: rate(a_total{x="[5x]"}[2s]) and a offset 10m
      - alert: Long
        expr: avg_over_time(a[30m]) > 0.9 and a offset 30m >= 0
        for: 30m
`

const short = `groups:
  - name: g
    interval: 3000ms
    rules:
      - alert: Slow
        expr: |-
          sum(rate(a_total[15000ms])) / sum(rate(b_total[30000ms])) > 5
        for: 45000ms
        labels: {severity: warning}
        annotations:
          summary: 'for 15m, {{ with query "increase(a_total[180000ms])" }}{{ end }}'
      - record: a:rate
        expr: rate(a_total{x="[5x]"}[2000ms]) and a offset 30000ms
      - alert: Long
        expr: avg_over_time(a[90000ms]) > 0.9 and a offset 90000ms >= 0
        for: 45000ms
`

func TestTimesAreShortenedAndNothingElse(t *testing.T) {
	if diff := cmp.Diff(short, Shorten(file, 20, 3*time.Second)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadReturnsAllRulesInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := Read(path, path)
	if err != nil || len(rules) != 6 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	if r := rules[0]; r.Alert != "Slow" || r.For != "15m" || r.Labels["severity"] != "warning" || r.Annotations["summary"] == "" {
		t.Errorf("read %+v", r)
	}
	if r := rules[4]; r.Record != "a:rate" || r.Expr == "" {
		t.Errorf("read %+v", r)
	}
}

func TestReadNamesTheFileThatIsNoYAML(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(path, []byte("groups: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil {
		t.Error("no error")
	}
	if _, err := Read(path + "x"); err == nil {
		t.Error("no error for a file that is not there")
	}
}
