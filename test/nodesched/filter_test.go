package main

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// This test's own process is the function: it has several threads, and the other class without priorities needs no privilege.
func TestAllThreadsOfAFunctionShareWhileItsCallWaits(t *testing.T) {
	pid := os.Getpid()
	if err := setProcess(pid, unix.SCHED_BATCH, 0); err != nil {
		t.Fatal(err)
	}
	f := filter{slice: leastSlice}
	f.hear(time.Now(), 'b', pid)
	threads, err := threadsOf(pid)
	if err != nil || len(threads) < 3 {
		t.Fatalf("%d threads, %v", len(threads), err)
	}
	for _, thread := range threads {
		if class, err := unix.SchedGetAttr(thread, 0); err != nil || class.Policy != unix.SCHED_NORMAL {
			t.Errorf("the thread %d is in the class %+v, %v", thread, class, err)
		}
	}
	if len(f.queue) != 1 || f.queue[0].process != pid {
		t.Errorf("%+v waits", f.queue)
	}
}

func TestAllThreadsOfTheFavouredFunctionAreRealTime(t *testing.T) {
	pid := os.Getpid()
	if err := setScheduler(0, unix.SCHED_FIFO, 1); err != nil {
		t.Skip("it may not use the real-time class:", err)
	}
	t.Cleanup(func() {
		if err := setProcess(pid, unix.SCHED_NORMAL, 0); err != nil {
			t.Error(err)
		}
	})
	f := filter{slice: leastSlice}
	now := time.Now()
	f.hear(now, 'b', pid)
	for _, step := range []struct {
		do       func()
		class    uint32
		priority uint32
	}{
		{func() { f.next(now) }, unix.SCHED_FIFO, favouredCall},
		{f.leave, unix.SCHED_NORMAL, 0},
		{func() { f.hear(now, 'e', pid) }, unix.SCHED_FIFO, servingPriority},
	} {
		step.do()
		threads, err := threadsOf(pid)
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			if is, err := unix.SchedGetAttr(thread, 0); err != nil || is.Policy != step.class || is.Priority != step.priority {
				t.Errorf("the thread %d has %+v, %v; want class %d, priority %d", thread, is, err, step.class, step.priority)
			}
		}
	}
}
