package cli

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

func TestWhatFunctionsWriteIsFound(t *testing.T) {
	const soon, late = time.Second, time.Minute
	type change struct {
		after time.Duration
		files string
	}
	rounds := func(n int, c change) []change { return slices.Repeat([]change{c}, n) }
	for name, c := range map[string]struct {
		changes []change
		// want is what each of the last changes does: d deploys, - does not.
		want  string
		found string
	}{
		"one file after each deployment":  {rounds(maxOwnWrites+3, change{soon, "state.db"}), "ddddd---", "state.db"},
		"a file and others":               {append(rounds(maxOwnWrites, change{soon, "state.db"}), change{soon, "lib.py state.db"}, change{soon, "state.db"}, change{soon, "lib.py"}), "dddddd-d", "state.db"},
		"files that are written together": {rounds(maxOwnWrites+1, change{soon, "state.db state.db-journal"}), "ddddd-", "state.db state.db-journal"},
		"different files":                 {[]change{{soon, "a"}, {soon, "b"}, {soon, "a"}, {soon, "b"}, {soon, "a"}, {soon, "b"}, {soon, "a"}, {soon, "b"}}, "dddddddd", ""},
		"a pause before each":             {rounds(maxOwnWrites+3, change{late, "lib.py"}), "dddddddd", ""},
		"a pause before one of them":      {slices.Concat(rounds(maxOwnWrites, change{soon, "lib.py"}), rounds(1, change{late, "lib.py"}), rounds(2, change{soon, "lib.py"})), "dddddddd", ""},
		"the handler, by an editor":       {rounds(maxOwnWrites+3, change{soon, "app.py"}), "dddddddd", ""},
		"what changed is not known":       {rounds(maxOwnWrites+3, change{soon, ""}), "dddddddd", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var own ownWrites
			var did strings.Builder
			var named []string
			at := now
			for _, change := range c.changes {
				at = at.Add(change.after)
				deploy, found := own.consider(at, strings.Fields(change.files), []string{"app.py"})
				named = append(named, found...)
				if !deploy {
					did.WriteByte('-')
					continue
				}
				did.WriteByte('d')
				own.deployed(at)
			}
			if did.String() != c.want || strings.Join(named, " ") != c.found {
				t.Errorf("it did %s and named %q, want %s and %q", did.String(), named, c.want, c.found)
			}
		})
	}
}

func TestPeopleWriteManifestsAndWhereFunctionsBegin(t *testing.T) {
	dir := write(t, map[string]string{
		"f.yaml":   yamlOf("f", "template: {command: [python3, app.py, --db, state.db], code: {path: f}}"),
		"f/app.py": "", "f/state.db": "",
		"g.yaml": yamlOf("g", "template: {runtimeRef: {name: python3.13}, handler: m.h, code: {path: g}}"),
		"g/m.py": "", "g/lib.py": "",
	})
	dir = behindLinks(dir)
	manifests, err := readManifests([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := authoredFiles(manifests)
	for name, want := range map[string]bool{"f.yaml": true, "f/app.py": true, "f/state.db": false, "g.yaml": true, "g/m.py": true, "g/lib.py": false} {
		if slices.Contains(got, filepath.Join(dir, name)) != want {
			t.Errorf("%s is among %q: %t", name, got, !want)
		}
	}
}

func TestATemporaryFileIsNoChange(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "new")
	there, gone, removed := filepath.Join(dir, "new"), filepath.Join(dir, "temporary"), filepath.Join(dir, "removed")
	got := lasting(map[string]fsnotify.Op{there: fsnotify.Create, gone: fsnotify.Create, removed: fsnotify.Remove})
	if want := []string{there, removed}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Each deployment of such a function was the reason for the next.
func TestDevStopsDeployingForAFileThatTheFunctionWrites(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := write(t, map[string]string{"f.yaml": yamlOf("f", "template: {command: [python3, app.py], code: {path: .}}")})
	th := open(t)
	applied := 0
	th.onApply = func() {
		put(t, dir, "state.db")
		if applied++; applied == maxOwnWrites+2 { // for lib.py
			cancel()
		}
	}
	notes := 0
	a := newApp(Streams{Out: io.Discard, Err: writerFunc(func(text string) {
		if strings.Contains(text, "state.db has changed again") {
			notes++
			put(t, dir, "lib.py")
		}
	})}, Programs{})
	d := &developer{deployer{reporter{a.finder}}, nil}
	if err := d.devWith(ctx, localTarget(th.dir), []string{dir}); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	if notes != 1 {
		t.Errorf("it said so %d times", notes)
	}
}
