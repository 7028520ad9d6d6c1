package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// The trace hang stops the process of the node agent of the image (SIGSTOP) while calls of 10 ms and of 300 ms want more
// than the core, so that pods are low. Its watcher must notice. The relay of the trace faults cannot show that: behind it
// the node agent goes on.
const (
	hangPods  = 20
	shortRate = 60.0 // calls of costCall a second
	longRate  = 2.0  // calls of hangLong a second
	hangLong  = 300 * time.Millisecond
	// hangAfter is when the process is stopped, and hangLoad for how long calls come.
	hangAfter, hangLoad = 3 * time.Second, 8 * time.Second
	// bandsBy is when no pod must be low any more.
	bandsBy = 3 * time.Second
)

// measureHang prints how long pods stay low, and what becomes of calls.
func measureHang(out io.Writer, self, temp string) (err error) {
	program, err := buildProduct(temp)
	if err != nil {
		return err
	}
	n := &ownNode{group: groupOf(os.Getpid())}
	short, long := &siege{}, &siege{}
	var agent *product
	defer func() {
		err = errors.Join(err, short.stop(), long.stop())
		if agent != nil {
			err = errors.Join(err, agent.stop())
		}
		err = errors.Join(err, n.stop())
	}()
	if err := n.makeGroups(); err != nil {
		return err
	}
	if agent, err = startProduct(program, temp, true, false); err != nil {
		return err
	}
	n.addr = agent.wire
	for function, s := range map[string]*siege{"short": short, "long": long} {
		if s.creds, err = agent.credentials(); err != nil {
			return err
		}
		s.token = agent.token
		for i := range hangPods {
			p, err := s.join(n, self, "shop", function, fmt.Sprint(function, "-", i), attacks[0])
			if err != nil {
				return err
			}
			s.victims = append(s.victims, p)
		}
	}
	var loads sync.WaitGroup
	var shorts, longs harm
	loads.Go(func() { shorts = short.load(rand.New(rand.NewPCG(1, 17)), shortRate, costCall, hangLoad) })
	loads.Go(func() { longs = long.load(rand.New(rand.NewPCG(2, 17)), longRate, hangLong, hangLoad) })
	time.Sleep(hangAfter)
	for began := time.Now(); n.lowPods() == 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > bandsBy {
			loads.Wait()
			return errors.New("no pod is low: the node does not order its calls")
		}
	}
	stopped, low := time.Now(), n.lowPods()
	if err := syscall.Kill(agent.measured, syscall.SIGSTOP); err != nil {
		return err
	}
	for n.lowPods() > 0 && time.Since(stopped) < 2*bandsBy {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(stopped)
	loads.Wait()
	still := n.lowPods()
	ended := agent.watcher.Wait() != nil
	agent.watcher = nil
	fmt.Fprintf(out, "nodesched_hang calls=%d failed=%d failed_open=%d low_when_stopped=%d low_for_ms=%d low_after=%d watcher_said_so=%t\n",
		len(shorts.took)+len(longs.took), shorts.errors+longs.errors, shorts.failedOpen+longs.failedOpen, low, took.Milliseconds(), still, ended)
	if took > bandsBy || still > 0 || shorts.errors+longs.errors > 0 {
		return errors.New("calls failed, or pods were low for longer than 3 s")
	}
	return nil
}

// lowPods is how many pods are in the low band.
func (n *ownNode) lowPods() (low int) {
	files, _ := filepath.Glob(filepath.Join(hierarchies[0], n.group, "0", "kubepods", "pod*", "cpu.idle"))
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && len(text) > 0 && text[0] == '1' {
			low++
		}
	}
	return low
}
