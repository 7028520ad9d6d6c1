package instancelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = invocation.FunctionKey{Namespace: "default", Name: "hello"}

// logFolder is the logs of one function, and what a follower has printed of them.
type logFolder struct {
	t       *testing.T
	dataDir string
	printed bytes.Buffer
}

func (d *logFolder) path(name string) string {
	d.t.Helper()
	dir := Dir(d.dataDir, key)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

func (d *logFolder) write(name, text string) {
	d.t.Helper()
	f, err := os.OpenFile(d.path(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		d.t.Fatal(err)
	}
}

func (d *logFolder) deleteFile(name string) {
	d.t.Helper()
	if err := os.Remove(d.path(name)); err != nil {
		d.t.Fatal(err)
	}
}

// want fails unless these lines were printed since the last call.
func (d *logFolder) want(lines ...string) {
	d.t.Helper()
	var got []string
	if d.printed.Len() > 0 {
		got = strings.Split(strings.TrimSuffix(d.printed.String(), "\n"), "\n")
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		d.t.Errorf("printed (-want +got):\n%s", diff)
	}
	d.printed.Reset()
}

func newFolder(t *testing.T) *logFolder { return &logFolder{t: t, dataDir: t.TempDir()} }

func (d *logFolder) follower(tail int) *follower {
	return newFollower(&d.printed, Dir(d.dataDir, key), Options{Tail: tail})
}

func mustStep(t *testing.T, f *follower) {
	t.Helper()
	if err := f.step(); err != nil {
		t.Fatal(err)
	}
}

func TestStepPrintsWhatIsNew(t *testing.T) {
	d := newFolder(t)
	f := d.follower(-1)
	mustStep(t, f)
	d.want()

	d.write("c-1.log", "one\ntwo\nthr")
	d.write("c-1.agent.log", "the agent's\n")
	d.write("notes.txt", "somebody's\n")
	mustStep(t, f)
	d.want("c-1 | one", "c-1 | two")
	mustStep(t, f)
	d.want()

	d.write("c-2.log", "hello\n")
	d.write("c-1.log", "ee\n")
	mustStep(t, f)
	d.want("c-1 | three", "c-2 | hello")
}

func TestStepHeedsTailOnlyForWhatIsThereAlready(t *testing.T) {
	for name, c := range map[string]struct {
		there string
		tail  int
		want  []string
	}{
		"all":                                 {"1\n2\n3\n", -1, []string{"c-1 | 1", "c-1 | 2", "c-1 | 3"}},
		"none":                                {"1\n2\n3\n", 0, nil},
		"the last":                            {"1\n2\n3\n", 1, []string{"c-1 | 3"}},
		"more than there are":                 {"1\n2\n", 9, []string{"c-1 | 1", "c-1 | 2"}},
		"as many as there are":                {"1\n2\n", 2, []string{"c-1 | 1", "c-1 | 2"}},
		"empty lines count":                   {"1\n\n\n", 2, []string{"c-1 | ", "c-1 | "}},
		"of an empty log":                     {"", 3, nil},
		"a line longer than what is read":     {"1\n" + strings.Repeat("x", chunkBytes+1) + "\n2\n", 1, []string{"c-1 | 2"}},
		"lines further back than one reading": {"1\n2" + strings.Repeat("\n", 2*chunkBytes), 2 * chunkBytes, append([]string{"c-1 | 2"}, repeated("c-1 | ", 2*chunkBytes-1)...)},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFolder(t)
			d.write("c-1.log", c.there)
			f := d.follower(c.tail)
			mustStep(t, f)
			d.want(c.want...)
			d.write("c-2.log", "a\nb\nc\n")
			mustStep(t, f)
			d.want("c-2 | a", "c-2 | b", "c-2 | c")
		})
	}
}

func repeated(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

func TestALineWithoutAnEndCountsAsTheLast(t *testing.T) {
	d := newFolder(t)
	d.write("c-1.log", "1\n2\n3")
	if err := Follow(t.Context(), &d.printed, d.dataDir, key, Options{Tail: 2}); err != nil {
		t.Fatal(err)
	}
	d.want("c-1 | 2", "c-1 | 3")
}

func TestALogThatIsDeletedIsPrintedToItsEnd(t *testing.T) {
	d := newFolder(t)
	d.write("c-1.log", "one\nunfinished")
	f := d.follower(-1)
	mustStep(t, f)
	d.deleteFile("c-1.log")
	mustStep(t, f)
	d.want("c-1 | one", "c-1 | unfinished")
	d.write("c-1.log", "another\n")
	mustStep(t, f)
	d.want("c-1 | another")
}

func TestALogThatIsReplacedByAShorterOneIsReadAnew(t *testing.T) {
	d := newFolder(t)
	d.write("c-1.log", "a long line\n")
	f := d.follower(-1)
	mustStep(t, f)
	d.want("c-1 | a long line")
	d.deleteFile("c-1.log")
	d.write("c-1.log", "short\n")
	mustStep(t, f)
	d.want("c-1 | short")
}

func TestAVeryLongLineIsPrintedInPieces(t *testing.T) {
	d := newFolder(t)
	f := d.follower(-1)
	d.write("c-1.log", strings.Repeat("x", chunkBytes)+"y")
	mustStep(t, f)
	d.want("c-1 | " + strings.Repeat("x", chunkBytes))
	d.write("c-1.log", "z\n")
	mustStep(t, f)
	d.want("c-1 | yz")
}

func TestFollowWithoutFollowSaysThatThereIsNothing(t *testing.T) {
	err := Follow(t.Context(), io.Discard, t.TempDir(), key, Options{Tail: -1})
	if err == nil || !strings.HasPrefix(err.Error(), "no instance of default/hello has written a log") {
		t.Errorf("it says %v", err)
	}
}

// pipeTo returns a writer that hands each of its writes to the test.
type pipeTo chan string

func (p pipeTo) Write(b []byte) (int, error) {
	p <- string(b)
	return len(b), nil
}

func TestFollowGoesOnUntilItsContextEnds(t *testing.T) {
	d := newFolder(t)
	d.write("c-1.log", "one\n")
	ctx, cancel := context.WithCancel(t.Context())
	lines := make(pipeTo)
	done := make(chan error, 1)
	go func() { done <- Follow(ctx, lines, d.dataDir, key, Options{Follow: true, Tail: -1}) }()
	if got := <-lines; got != "c-1 | one\n" {
		t.Errorf("printed %q", got)
	}
	if got := <-lines; got != "" {
		t.Errorf("printed %q before it waits", got)
	}
	d.write("c-2.log", "two\n")
	if got := <-lines; got != "c-2 | two\n" {
		t.Errorf("printed %q", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Follow: %v", err)
	}
}

func TestFollowSaysThatItFollowsThoughThereAreNoLines(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	writes := make(pipeTo)
	done := make(chan error, 1)
	go func() { done <- Follow(ctx, writes, t.TempDir(), key, Options{Follow: true, Tail: -1}) }()
	if got := <-writes; got != "" {
		t.Errorf("printed %q", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Follow: %v", err)
	}
}

// failingWriter is a writer that fails.
type failingWriter struct{ err error }

func (b failingWriter) Write([]byte) (int, error) { return 0, b.err }

func TestFollowEndsWhenItsWriterFails(t *testing.T) {
	d := newFolder(t)
	d.write("c-1.log", "one\n")
	want := errors.New("the terminal is gone")
	if err := Follow(t.Context(), failingWriter{want}, d.dataDir, key, Options{Follow: true, Tail: -1}); !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// times says when a log had grown to its lines' ends: pairs of an offset and a second.
func (d *logFolder) times(cid invocation.CID, pairs ...int64) {
	d.t.Helper()
	log := &recordedLog{}
	for i := 0; i < len(pairs); i += 2 {
		if err := log.stamp(d.path(TimesFile(cid)), stamp{pairs[i], second(pairs[i+1])}); err != nil {
			d.t.Fatal(err)
		}
	}
}

func second(n int64) time.Time { return time.Date(2026, 3, 1, 12, 0, int(n), 0, time.UTC) }

func TestA12LinesOfAllInstancesAreInTheOrderOfTheirTimes(t *testing.T) {
	d := newFolder(t)
	d.write("c-1.log", "one\nfour\nfive\n")
	d.times("c-1", 4, 1, 9, 4, 14, 5)
	d.write("c-2.log", "two\nthree\nsix\n")
	d.times("c-2", 10, 2, 14, 6)
	stamped := func(second int, line string) string {
		return fmt.Sprintf("2026-03-01T12:00:%02d.000Z %s", second, line)
	}
	all := []string{stamped(1, "c-1 | one"), stamped(2, "c-2 | two"), stamped(2, "c-2 | three"), stamped(4, "c-1 | four"), stamped(5, "c-1 | five"), stamped(6, "c-2 | six")}
	for name, c := range map[string]struct {
		opts Options
		want []string
	}{
		"all":                        {Options{Tail: -1}, all},
		"the last of all together":   {Options{Tail: 2}, all[4:]},
		"since a time":               {Options{Tail: -1, Since: second(4)}, all[3:]},
		"since a time, but the last": {Options{Tail: 1, Since: second(4)}, all[5:]},
		"since after everything":     {Options{Tail: -1, Since: second(7)}, nil},
		"more than there are":        {Options{Tail: 7}, all},
		"followed, since a time":     {Options{Tail: -1, Since: second(5), Follow: true}, all[4:]},
	} {
		t.Run(name, func(t *testing.T) {
			c.opts.Timestamps = true
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := Follow(ctx, &d.printed, d.dataDir, key, c.opts); err != nil {
				t.Fatal(err)
			}
			d.want(c.want...)
		})
	}
}

func TestALineThatIsTooNewForATimeComesLast(t *testing.T) {
	d := newFolder(t)
	d.write("c-1.log", "one\njust now\n")
	d.times("c-1", 4, 1)
	d.write("c-2.log", "two\n")
	d.times("c-2", 4, 2)
	if err := Follow(t.Context(), &d.printed, d.dataDir, key, Options{Tail: -1}); err != nil {
		t.Fatal(err)
	}
	d.want("c-1 | one", "c-2 | two", "c-1 | just now")
}

func TestFileCID(t *testing.T) {
	for name, want := range map[string]invocation.CID{
		FunctionFile("c-1"): "c-1",
		AgentFile("c-1"):    "c-1",
		"notes.txt":         "",
		".log":              "",
		".agent.log":        "",
		TimesFile("c-1"):    "",
	} {
		if got, ok := FileCID(name); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %t; want %q", name, got, ok, want)
		}
	}
}
