package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
)

// unit is a revision of the function of a UID.
func unit(function string, n int) *v1alpha1.Function {
	fn := &v1alpha1.Function{}
	fn.UID = types.UID(fmt.Sprint(function, n))
	fn.Annotations = map[string]string{v1alpha1.AnnotationFunctionUID: function}
	return fn
}

func TestWhatWasLearntIsThereAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "estimates.json")
	first, err := OpenEstimates(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := first.Restore(unit("u", 3)); got != (estimate.Means{}) {
		t.Errorf("of a function of which nothing is known: %v", got)
	}
	if err := first.Save([]estimate.Unit{{UID: "u0", Function: "u", Execution: time.Second, Start: -1}}); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*Estimates{first, reopened(t, path)} {
		for n := range 2 {
			if got, want := l.Restore(unit("u", n)), (estimate.Means{Execution: time.Second}); got != want {
				t.Errorf("of revision %d: got %v, want %v", n, got, want)
			}
		}
		if got := l.Restore(unit("another", 0)); got != (estimate.Means{}) {
			t.Errorf("of another function: %v", got)
		}
	}
	if err := first.Save(nil); err != nil {
		t.Fatal(err)
	}
	if got := reopened(t, path).Restore(unit("u", 3)); got != (estimate.Means{}) {
		t.Errorf("of a function that is gone: %v", got)
	}
}

func reopened(t *testing.T, path string) *Estimates {
	t.Helper()
	l, err := OpenEstimates(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAFileThatIsOfNoUseIsSaidSoAndReplaced(t *testing.T) {
	for name, text := range map[string]string{
		"broken": `{"u": {"gener`, "something else": `{"u": {"startNs": 1}}`, "too large": strings.Repeat(" ", maxEstimates+1),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "estimates.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := OpenEstimates(path)
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one that names the file", err)
			}
			if err := l.Save([]estimate.Unit{{UID: "u1", Function: "u", Start: 1}}); err != nil {
				t.Fatal(err)
			}
			if got := reopened(t, path).Restore(unit("u", 1)).Start; got != 1 {
				t.Errorf("got %v of what was kept", got)
			}
		})
	}
}

func TestWhatACrashLeftUnfinishedIsRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".estimates.json.123.tmp", ".other.json.123.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reopened(t, filepath.Join(dir, "estimates.json"))
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != ".other.json.123.tmp" {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestWhatIsNotReadAgainIsNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "estimates.json")
	l := reopened(t, path)
	if err := l.Save([]estimate.Unit{{UID: strings.Repeat("u", maxEstimates), Function: "u", Start: 1}}); err == nil {
		t.Error("it was kept")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it was written")
	}
}

func TestNothingIsWrittenUnlessSomethingWasLearnt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "estimates.json")
	l := reopened(t, path)
	known := []estimate.Unit{{UID: "u1", Function: "u", Start: 100}, {UID: "v1", Function: "v", Start: 200}}
	if err := l.Save(known); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	known[0].Start += 9
	if err := l.Save(known); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("nearly the same was written again")
	}
	known[0].Start += 9
	if err := l.Save(known); err != nil || reopened(t, path).Restore(unit("v", 1)).Start != 200 {
		t.Errorf("it was not written after a change: %v", err)
	}
}
