package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/process/instancelog"
)

func TestLastLines(t *testing.T) {
	long := strings.Repeat("x", tailLineBytes)
	var many, last20 []string
	for i := range 30 {
		many = append(many, fmt.Sprint(i))
	}
	last20 = many[10:]
	for name, c := range map[string]struct {
		data string
		cut  bool
		want []string
	}{
		"nothing":                                  {"", false, nil},
		"an empty line is nothing":                 {"\n", false, nil},
		"lines":                                    {"a\nb\n", false, []string{"a", "b"}},
		"a line without an end counts":             {"a\nb", false, []string{"a", "b"}},
		"empty lines between others stay":          {"a\n\nb\n", false, []string{"a", "", "b"}},
		"carriage returns go":                      {"a\r\nb\r\n", false, []string{"a", "b"}},
		"at most twenty":                           {strings.Join(many, "\n") + "\n", false, last20},
		"a line that was cut into is left out":     {"rest\na\n", true, []string{"a"}},
		"unless there is no other":                 {"rest", true, []string{"rest"}},
		"long lines are cut":                       {long + "y\n", false, []string{long}},
		"and not in the middle of a character":     {long[1:] + "é\n", false, []string{long[1:]}},
		"bytes that are no text are made so":       {"a\xffb\n", false, []string{"a?b"}},
		"a long line of no text ends all the same": {strings.Repeat("\x80", 600) + "\n", false, []string{"?"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lastLines([]byte(c.data), c.cut)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheTailIsOfThisInstanceAndOfBoundedSize(t *testing.T) {
	dir := t.TempDir()
	open := func() *logs {
		l, err := openLogs(dir, testKey(), "c-1")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.close)
		return l
	}
	tail := func(l *logs) []string {
		lines, err := l.tail()
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	first := open()
	fmt.Fprintln(first.function, "of a predecessor of the same name")
	second := open()
	if got := tail(second); got != nil {
		t.Errorf("before a word was written: %q", got)
	}
	fmt.Fprintln(second.function, strings.Repeat("x", 2*tailReadBytes))
	fmt.Fprintln(second.function, "end")
	if diff := cmp.Diff([]string{"end"}, tail(second)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every call of a local Windlass pays this.
func BenchmarkLogSize(b *testing.B) {
	l, err := openLogs(b.TempDir(), testKey(), "c-1")
	if err != nil {
		b.Fatal(err)
	}
	defer l.close()
	r := &Driver{logSizes: logSizes{open: map[logName]*os.File{{testKey(), "c-1"}: l.function}}}
	for b.Loop() {
		if _, runs := r.LogSize(testKey(), "c-1"); !runs {
			b.Fatal("it is not known")
		}
	}
}

func TestPruneLogsKeepsTheLivingAndTheYoungest(t *testing.T) {
	dataDir := t.TempDir()
	dir := instancelog.Dir(dataDir, testKey())
	start := time.Now().Add(-time.Hour)
	const n = keptLogs + 5
	for i := range n {
		// The ids fall as time goes on, so that they cannot be what counts.
		cid := invocation.CID(fmt.Sprintf("c-%02d", n-i))
		l, err := openLogs(dataDir, testKey(), cid)
		if err != nil {
			t.Fatal(err)
		}
		l.close()
		for _, name := range []string{instancelog.FunctionFile(cid), instancelog.AgentFile(cid)} {
			at := start.Add(time.Duration(i) * time.Minute)
			if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	oldest := invocation.CID(fmt.Sprintf("c-%02d", n))
	err := pruneLogs(dataDir, testKey(), func() map[invocation.CID]bool { return map[invocation.CID]bool{oldest: true} })
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := 1; i <= keptLogs; i++ {
		cid := invocation.CID(fmt.Sprintf("c-%02d", i))
		want = append(want, instancelog.AgentFile(cid), instancelog.FunctionFile(cid))
	}
	want = append(want, instancelog.AgentFile(oldest), instancelog.FunctionFile(oldest), "notes.txt")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPruneLogsOfAFunctionThatNeverRan(t *testing.T) {
	if err := pruneLogs(t.TempDir(), testKey(), func() map[invocation.CID]bool { return nil }); err != nil {
		t.Error(err)
	}
}
