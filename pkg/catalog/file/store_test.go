package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func function(name string) *v1alpha1.Function {
	f := &v1alpha1.Function{}
	f.Name = name
	f.Spec.Template.Command = []string{"./server"}
	return f
}

func key(name string) invocation.FunctionKey {
	return invocation.FunctionKey{Namespace: v1alpha1.DefaultNamespace, Name: name}
}

func apply(t *testing.T, s *Store, f *v1alpha1.Function, want Result) *v1alpha1.Function {
	t.Helper()
	got, err := s.Apply(f)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("Apply says %s, want %s", got, want)
	}
	stored, ok := s.Get(key(f.Name))
	if !ok {
		t.Fatal("an applied function is not in the catalog")
	}
	return stored
}

// files are the paths below dir, without folders.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			paths = append(paths, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestApplyGivesAFunctionItsIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		given := function("f")
		given.UID, given.Generation, given.Finalizers = "mine", 7, []string{"x"}
		given.Status.Instances.Ready = 3

		first := apply(t, s, given, Created)
		if first.UID == "" || first.UID == "mine" || first.Generation != 1 || !first.CreationTimestamp.Time.Equal(time.Now()) {
			t.Errorf("a new function has UID %q, generation %d, creation %v", first.UID, first.Generation, first.CreationTimestamp)
		}
		if first.Namespace != "default" || first.Spec.Template.Timeout.Duration != time.Minute {
			t.Error("defaults are missing")
		}
		if len(first.Finalizers) > 0 || first.Status.Instances.Ready != 0 {
			t.Error("what is not the user's to say was kept")
		}
		if given.Namespace != "" || given.Spec.Template.Timeout.Duration != 0 {
			t.Error("Apply changed its argument")
		}

		<-time.After(time.Hour) // The clock is the bubble's.
		// What is no longer held is a copy of the first.
		if diff := cmp.Diff(first, apply(t, s, given, Unchanged)); diff != "" {
			t.Errorf("an unchanged function was replaced (-first +again):\n%s", diff)
		}

		given.Labels = map[string]string{"a": "b"}
		labelled := apply(t, s, given, Configured)
		if labelled.Generation != 1 || labelled.UID != first.UID {
			t.Errorf("a label made generation %d of %s", labelled.Generation, labelled.UID)
		}

		given.Spec.Template.Concurrency = 2
		changed := apply(t, s, given, Configured)
		if changed.Generation != 2 || changed.UID != first.UID || !changed.CreationTimestamp.Equal(&first.CreationTimestamp) {
			t.Errorf("a changed function has UID %q, generation %d, creation %v", changed.UID, changed.Generation, changed.CreationTimestamp)
		}
		if first.Spec.Template.Concurrency != 1 {
			t.Error("a function that was handed out changed")
		}
		given.Spec.Template.Command[0] = "other"
		if changed.Spec.Template.Command[0] != "./server" {
			t.Error("the store shares its memory with the caller")
		}
	})
}

func TestApplySeesNoChangeInAnotherSpelling(t *testing.T) {
	s := open(t, t.TempDir())
	read := func(spec string) *v1alpha1.Function {
		functions, err := v1alpha1.Decode([]byte("apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: f}\nspec: "+spec), "test")
		if err != nil {
			t.Fatal(err)
		}
		return functions[0]
	}
	apply(t, s, read(`{template: {command: [x], timeout: 60s, resources: {requests: {cpu: 0.1}}}}`), Created)
	apply(t, s, read(`{template: {command: [x], timeout: 1m, env: [], resources: {requests: {cpu: 100m}}}}`), Unchanged)
}

func TestApplyRefusesWhatIsNotValidAndKeepsWhatItHas(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	before := apply(t, s, function("f"), Created)
	bad := function("f")
	bad.Spec.Template.Command, bad.Spec.Template.Image, bad.Spec.Template.Concurrency = nil, "a/b", -1
	_, err := s.Apply(bad)
	var invalid *InvalidError
	if !errors.As(err, &invalid) || len(invalid.Problems) != 2 || invalid.Key != key("f") {
		t.Fatalf("got %v", err)
	}
	want := "function default/f: spec.template.concurrency: Invalid value: -1: must be 1 to 1000; write for example 1\n" +
		`function default/f: spec.template.image: Invalid value: "a/b": needs a cluster; give command: or runtimeRef: to run it in local mode`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
	outside := function("../../f")
	if _, err := s.Apply(outside); !errors.As(err, &invalid) {
		t.Errorf("a name that leads out of the folder: %v", err)
	}
	if after, _ := s.Get(key("f")); !equality.Semantic.DeepEqual(after, before) {
		t.Error("a refused function changed the store")
	}
	if diff := cmp.Diff([]string{"default/f.yaml"}, files(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestAReopenedStoreHoldsTheSame(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "open")
	s := open(t, dir)
	a := function("a")
	a.Annotations = map[string]string{"note": "x"}
	apply(t, s, a, Created)
	apply(t, s, function("gone"), Created)
	b := function("b")
	b.Namespace = "team"
	b.Spec.Template.Command = nil
	b.Spec.Template.RuntimeRef.Name, b.Spec.Template.Handler = v1alpha1.RuntimePython313, "main.handle"
	b.Spec.Template.Code = &v1alpha1.Code{Inline: "def handle(e, c):\r\n\treturn '\x7f'\n"}
	if _, err := s.Apply(b); err != nil {
		t.Fatal(err)
	}
	a.Spec.Calls.Delivery = v1alpha1.DeliveryAtLeastOnce
	apply(t, s, a, Configured)
	if err := s.Delete(key("gone")); err != nil {
		t.Fatal(err)
	}

	again := open(t, dir)
	want, got := s.List(), again.List()
	if len(got) != 2 || !equality.Semantic.DeepEqual(want, got) {
		t.Errorf("got %v, want %v", got, want)
	}
	apply(t, again, a, Unchanged)
	text, err := os.ReadFile(filepath.Join(dir, "default", "a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, noise := range []string{"null", "{}"} {
		if strings.Contains(string(text), noise) {
			t.Errorf("the file holds %s:\n%s", noise, text)
		}
	}
}

func TestDeleteForgetsTheIdentity(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Delete(key("f")); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleting nothing: %v", err)
	}
	first := apply(t, s, function("f"), Created)
	if err := s.Delete(key("f")); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Catalog().Get(key("f")); ok || len(files(t, dir)) > 0 {
		t.Error("a deleted function is still there")
	}
	if err := s.Delete(key("f")); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleting twice: %v", err)
	}
	if second := apply(t, s, function("f"), Created); second.UID == first.UID {
		t.Error("another function has the same UID")
	}
}

func TestDeleteOfAFileThatIsGoneAlready(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	apply(t, s, function("f"), Created)
	if err := os.Remove(filepath.Join(dir, "default", "f.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(key("f")); err != nil {
		t.Error(err)
	}
}

func TestACrashWhileWritingLeavesTheFormerFunction(t *testing.T) {
	dir := t.TempDir()
	before := apply(t, open(t, dir), function("f"), Created)
	half := filepath.Join(dir, "default", ".f.yaml.123"+unfinished)
	if err := os.WriteFile(half, []byte("apiVersion: windl"), 0o600); err != nil {
		t.Fatal(err)
	}
	others := filepath.Join(dir, "default", ".DS_Store")
	if err := os.WriteFile(others, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	after, _ := open(t, dir).Get(key("f"))
	if !equality.Semantic.DeepEqual(before, after) {
		t.Errorf("got %v, want %v", after, before)
	}
	if diff := cmp.Diff([]string{"default/.DS_Store", "default/f.yaml"}, files(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestAFailedWriteChangesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	// A folder that is not empty cannot give its name to a file.
	if err := os.MkdirAll(filepath.Join(dir, "default", "f.yaml", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := s.Apply(function("f"))
	var invalid *InvalidError
	if err == nil || errors.As(err, &invalid) || !strings.Contains(err.Error(), "f.yaml") {
		t.Errorf("got %v", err)
	}
	if len(s.Catalog().List()) > 0 {
		t.Error("the catalog holds what the folder does not")
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A reader that comes in between sees one whole function or the other.
func TestAFileIsWholeAtEveryMoment(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	f := function("f")
	apply(t, s, f, Created)
	path := filepath.Join(dir, "default", "f.yaml")
	done := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			text, err := os.ReadFile(path)
			if err == nil {
				_, _, err = v1alpha1.DecodeHistory(text, path)
			}
			if err != nil {
				t.Error(err)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for i := range 15 { // each keeps the revisions before it, so the file grows by more and more
		f.Spec.Template.Env = nil
		for j := range i * 10 {
			f.Spec.Template.Env = append(f.Spec.Template.Env, v1alpha1.EnvVar{Name: fmt.Sprint("V", j), Value: strings.Repeat("x", 50)})
		}
		f.Spec.Template.Concurrency = int32(i + 2)
		apply(t, s, f, Configured)
	}
	close(done)
	reader.Wait()
}

func TestAppliesAtTheSameTimeAreOneAfterTheOther(t *testing.T) {
	const writers, rounds = 8, 10
	dir := t.TempDir()
	s := open(t, dir)
	var wg sync.WaitGroup
	var mu sync.Mutex
	results := make(map[Result]int)
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				f := function("shared")
				f.Spec.Template.Concurrency = int32(1 + w*rounds + i)
				result, err := s.Apply(f)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				results[result]++
				mu.Unlock()
				if _, err := s.Apply(function(fmt.Sprintf("own-%d", w))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[Result]int{Created: 1, Configured: writers*rounds - 1}, results); diff != "" {
		t.Error(diff)
	}
	shared, _ := s.Get(key("shared"))
	if shared.Generation != writers*rounds {
		t.Errorf("generation is %d, want %d", shared.Generation, writers*rounds)
	}
	if !equality.Semantic.DeepEqual(s.List(), open(t, dir).List()) {
		t.Error("the folder and the catalog differ")
	}
}

func TestPreviewChangesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	result, fn, err := s.Preview(function("f"))
	if err != nil || result != Created || fn.Spec.Template.Concurrency != 1 {
		t.Errorf("%s, %v, %v", result, fn, err)
	}
	if _, there := s.Catalog().Get(key("f")); there || len(files(t, dir)) > 0 {
		t.Error("a preview was kept")
	}
	apply(t, s, function("f"), Created)
	changed := function("f")
	changed.Spec.Template.Concurrency = 3
	if result, _, err := s.Preview(changed); result != Configured || err != nil {
		t.Errorf("%s, %v", result, err)
	}
	if result, _, err := s.Preview(function("f")); result != Unchanged || err != nil {
		t.Errorf("%s, %v", result, err)
	}
}

func TestAChangeDoesNotUndoAnother(t *testing.T) {
	s := open(t, t.TempDir())
	apply(t, s, of(1), Created)
	read := func() Version {
		f, ok := s.Get(key("f"))
		if !ok {
			t.Fatal("f is gone")
		}
		return VersionOf(f)
	}
	replace := func(base Version, f *v1alpha1.Function, want error) {
		t.Helper()
		if _, err := s.Replace(base, f); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	labelled := func(f *v1alpha1.Function) { f.Labels = map[string]string{"team": "a"} }
	first := read()
	replace(first, of(2), nil)
	replace(first, of(3), ErrConflict)
	second := read()
	replace(second, of(2, labelled), nil)
	replace(second, of(3), ErrConflict)
	third := read()
	if err := s.Delete(key("f")); err != nil {
		t.Fatal(err)
	}
	replace(third, of(3), ErrConflict)
	apply(t, s, of(2, labelled), Created)
	replace(third, of(3), ErrConflict)
	if f, _ := s.Get(key("f")); f.Spec.Template.Concurrency != 2 {
		t.Errorf("a change that was refused was made: %+v", f.Spec.Template)
	}
	replace("", of(3), nil)
}
