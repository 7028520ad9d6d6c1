package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAllButFunctionsRunsOnOneCore(t *testing.T) {
	runtime.LockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil || !before.IsSet(platformCore) {
		t.Skip("the core of the platform may not be used:", err)
	}
	t.Cleanup(func() {
		threads, err := threadsOf(os.Getpid())
		for _, thread := range threads {
			_ = unix.SchedSetaffinity(thread, &before) // it may have ended
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err := leaveCore(); err != nil {
		t.Fatal(err)
	}
	var after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &after); err != nil || after.Count() != 1 || !after.IsSet(platformCore) {
		t.Errorf("it runs on %d cores, %v", after.Count(), err)
	}
}

func TestAWindlassWithTicketsForOtherCoresIsNotMeasured(t *testing.T) {
	tickets := 1
	ops := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(to, "# TYPE windlass_node_cores gauge\nwindlass_node_cores %d\n", tickets)
	}))
	defer ops.Close()
	s := &server{ops: ops.URL, http: &http.Transport{}}
	serpt, _ := policyByName("serpt")
	if err := s.hasOneTicket(serpt); err != nil {
		t.Error(err)
	}
	if tickets = 3; s.hasOneTicket(serpt) == nil {
		t.Error("three calls would compute on one core")
	}
	if err := s.hasOneTicket(policy{name: "off"}); err != nil {
		t.Error(err)
	}
}

func TestATimerIsOnTime(t *testing.T) {
	wake, err := newDueTimer()
	if err != nil {
		t.Fatal(err)
	}
	defer wake.timer.Stop()
	for _, after := range []time.Duration{5 * ms, -ms, 0, 5 * ms} {
		at := time.Now().Add(after)
		wake.sleepUntil(at)
		if time.Now().Before(at) {
			t.Errorf("it rang before %s had passed", after)
		}
	}
}
