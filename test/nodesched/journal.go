package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// damages are what may happen to the list of the groups that are low.
var damages = []struct {
	name, what string
	do         func(path string) error
}{
	{"N6a", "journal lost", func(path string) error {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) { // it is not made again before it is long
			return err
		}
		return nil
	}},
	{"N6b", "journal corrupt", func(path string) error {
		return os.WriteFile(path, []byte("low \x00\xff\nlow 1024 \"/\"\nnormal\n"), 0o600)
	}},
}

// measureDamage damages the journal of a busy node, whose calls must not notice, and does so again
// right before Windlass is killed: then the next one must leave nobody in the low band.
func measureDamage(out io.Writer, self, temp string) error {
	var problems error
	for _, d := range damages {
		s, err := startBusy(self, temp)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		journal := filepath.Join(temp, "data", "node", "bands")
		t := two(rand.New(rand.NewPCG(1, 17)), faultLoad, faultAfter+2*time.Second)
		var damaged error
		damaging := time.AfterFunc(faultAfter, func() { damaged = d.do(journal) })
		o := outcome{results: s.replay(t)}
		damaging.Stop()
		time.Sleep(bandsWithin)
		low := lowGroups()
		killed, err := killBusy(s, t, func() error { return d.do(journal) })
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, errors.Join(err, s.stop()))
		}
		s, err = startBusy(self, temp)
		if err != nil {
			return fmt.Errorf("%s: starting again: %w", d.name, err)
		}
		after := outcome{results: s.replay(two(rand.New(rand.NewPCG(2, 17)), faultLoad, time.Second))}
		time.Sleep(bandsWithin)
		restarted := lowGroups()
		err = errors.Join(damaged, s.stop(), os.RemoveAll(filepath.Join(temp, "data")))
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		failed, first := o.failed()
		failedAfter, firstAfter := after.failed()
		fmt.Fprintf(out, "nodesched_fault_%s=%q calls=%d failed=%d low_after=%d low_when_killed=%d failed_after_restart=%d low_after_restart=%d\n",
			d.name, d.what, len(o.results)+len(after.results), failed, low, killed, failedAfter, restarted)
		if failed+failedAfter+low+restarted > 0 {
			problems = errors.Join(problems, fmt.Errorf("%s: calls failed, or instances stay in the low band: %w", d.name, errors.Join(first, firstAfter)))
		}
	}
	return problems
}

// startBusy starts a Windlass with the instances of the trace two.
func startBusy(self, temp string) (*server, error) {
	p, err := policyByName("serpt")
	if err != nil {
		return nil, err
	}
	return startServer(self, temp, p, two(rand.New(rand.NewPCG(1, 17)), 1, time.Second))
}

// killBusy makes calls, does something once instances are low, and kills the Windlass at once. It
// returns how many groups were low then.
func killBusy(s *server, t trace, before func() error) (low int, err error) {
	replayed := make(chan []result, 1)
	go func() { replayed <- s.replay(t) }()
	deadline := time.Now().Add(faultAfter + 2*time.Second)
	for low = lowGroups(); low == 0; low = lowGroups() {
		if time.Now().After(deadline) {
			return 0, errors.New("nobody was in the low band")
		}
		time.Sleep(10 * time.Millisecond)
	}
	err = errors.Join(before(), s.cmd.Process.Kill())
	<-replayed // most calls failed
	_ = s.cmd.Wait()
	return low, err
}

// bandsWithin is how long after a fault nobody may be in the low band any more that does not
// belong there.
const bandsWithin = 3 * time.Second

// lowGroups is how many groups of functions are in the low band.
func lowGroups() (low int) {
	own, _ := os.ReadFile("/proc/self/cgroup")
	idle, _ := filepath.Glob(bandsOfFunctions(string(own)))
	for _, file := range idle {
		if text, err := os.ReadFile(file); err == nil && len(text) > 0 && text[0] == '1' {
			low++
		}
	}
	return low
}

// bandsOfFunctions is the pattern of the files that say which groups of functions are low, for a process of these groups: a
// local Windlass makes them below its own group, and with version 2 beside it.
func bandsOfFunctions(own string) string {
	root, group := "/sys/fs/cgroup", "/"
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		if slices.Contains(strings.Split(f[1], ","), "cpu") {
			root, group = hierarchies[0], f[2]
			break
		}
		if f[1] == "" {
			group = filepath.Dir(f[2])
		}
	}
	return filepath.Join(root, group, "windlass-*", "cpu.idle")
}

// everLow looks until a group of a function is low, or until ended is closed, and reports whether one was.
func everLow(ended <-chan struct{}) bool {
	for lowGroups() == 0 {
		select {
		case <-ended:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return true
}
