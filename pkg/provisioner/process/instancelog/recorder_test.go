package instancelog

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"
)

// recorderHarness is a Recorder whose time stands until it is moved.
type recorderHarness struct {
	*logFolder
	recorder *Recorder
	watcher  *fsnotify.Watcher
	now      time.Time
	lines    []Line
}

func newRecorderHarness(t *testing.T, d *logFolder) *recorderHarness {
	o := &recorderHarness{logFolder: d, now: second(0)}
	o.recorder = NewRecorder(d.dataDir, RecorderDeps{
		Now: func() time.Time { return o.now }, OnLine: func(l Line) { o.lines = append(o.lines, l) }, Log: slog.New(slog.DiscardHandler),
	})
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watcher.Close() })
	o.watcher = watcher
	return o
}

// open looks at what is there.
func (o *recorderHarness) open() {
	o.t.Helper()
	if err := o.recorder.scan(o.watcher, o.recorder.root, true); err != nil {
		o.t.Fatal(err)
	}
}

// wait handles events until so many lines were heard.
func (o *recorderHarness) wait(lines int) {
	o.t.Helper()
	for len(o.lines) < lines {
		o.recorder.handle(o.watcher, <-o.watcher.Events)
	}
}

func (o *recorderHarness) times() (all []int64) {
	o.t.Helper()
	times, err := readTimeline(o.path(TimesFile("c-1")))
	if err != nil {
		o.t.Fatal(err)
	}
	for _, s := range times {
		all = append(all, s.offset, int64(s.at.Sub(second(0)).Seconds()))
	}
	return all
}

func TestA12TheRecorderNotesWhenLinesWereWritten(t *testing.T) {
	d := newFolder(t)
	o := newRecorderHarness(t, d)
	d.write("c-0.log", "from before\n")
	o.open()
	o.now = second(1)
	d.write("c-1.log", "one\ntw")
	o.wait(1)
	o.now = second(2)
	d.write("c-1.log", "o\n")
	o.wait(2)
	want := []Line{{Function: key, CID: "c-1", At: second(1), Text: "one"}, {Function: key, CID: "c-1", At: second(2), Text: "two"}}
	if diff := cmp.Diff(want, o.lines); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{6, 1, 8, 2}, o.times()); diff != "" {
		t.Errorf("stamps (-want +got):\n%s", diff)
	}
	// Another Recorder goes on where this one ended.
	again := newRecorderHarness(t, d)
	again.open()
	again.now = second(9)
	d.write("c-1.log", "three\n")
	again.wait(1)
	if got := again.times(); len(got) != 6 || got[4] != 14 || got[5] != 9 {
		t.Errorf("stamps are %v", got)
	}
}

// Logs of ended instances are pruned at any time.
func TestALogThatVanishesDuringTheScanHidesNoOther(t *testing.T) {
	d := newFolder(t)
	o := newRecorderHarness(t, d)
	d.write("c-2.log", "hello\n")
	if err := os.Symlink(d.path("gone"), d.path("c-1.log")); err != nil { // listed, but not there
		t.Fatal(err)
	}
	if err := o.recorder.scan(o.watcher, o.recorder.root, false); err != nil {
		t.Error(err)
	}
	if len(o.lines) != 1 || o.lines[0].Text != "hello" {
		t.Errorf("heard %+v", o.lines)
	}
}

func TestANewFunctionIsWatchedFromItsFirstLine(t *testing.T) {
	d := newFolder(t)
	o := newRecorderHarness(t, d)
	d.path("")
	o.open()
	other := &logFolder{t: t, dataDir: d.dataDir}
	file := filepath.Join("..", "..", "another", "new", "c-7.log")
	other.path(file)
	mustMkdir(t, filepath.Dir(other.path(file)))
	other.write(file, "hello\n")
	o.wait(1)
	if l := o.lines[0]; l.Function.String() != "another/new" || l.Text != "hello" {
		t.Errorf("heard %+v", l)
	}
}

func TestStampsOfABurstAreFew(t *testing.T) {
	d := newFolder(t)
	log := &recordedLog{}
	for i := range int64(1000) {
		if err := log.stamp(d.path(TimesFile("c-1")), stamp{i + 1, second(0).Add(time.Duration(i) * time.Microsecond)}); err != nil {
			t.Fatal(err)
		}
	}
	if times, err := readTimeline(d.path(TimesFile("c-1"))); err != nil || len(times) != 1 || times.lastOffset() != 1000 {
		t.Errorf("%v, %v", times, err)
	}
}

func TestABrokenTimelineEndsWhereItBreaks(t *testing.T) {
	good := append(stamp{5, second(1)}.encode(), stamp{9, second(2)}.encode()...)
	for _, broken := range [][]byte{append(good[:len(good):len(good)], 1, 2, 3), append(good[:len(good):len(good)], stamp{9, second(3)}.encode()...)} {
		if times := decodeTimeline(broken); len(times) != 2 || times.lastOffset() != 9 {
			t.Errorf("%v", times)
		}
	}
}

func mustMkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}
