package podagent

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

func TestGatewaysAreToldTheTimesOfACall(t *testing.T) {
	const toGrant, toHead, toEnd = 3 * time.Millisecond, 5 * time.Millisecond, 12 * time.Millisecond
	withHarness(t, nil, func(w *harness) {
		p := w.begin()
		p.lent("a")
		claim := w.claim()
		time.Sleep(toGrant)
		claim.grant(callwire.Call{Whole: true})
		call := <-w.adapter.calls
		time.Sleep(toHead)
		_ = call.w.WriteHead(adapter.Head{Status: 200, ContentLength: -1})
		head, _ := callwire.ParseHead(<-claim.said)
		time.Sleep(toEnd - toHead)
		call.end <- nil
		end, _ := callwire.ParseEnd(<-claim.said)
		if head.BegunAfter != toGrant || head.Exec != toHead || end.Exec != toEnd {
			t.Errorf("told %v and %v", head, end)
		}
		claim.hearEnd()
		p.hear("pull 0 done a after 12ms lent gateway:1 1")
		claim = claim.call(get())
		call = <-w.adapter.calls
		time.Sleep(toHead)
		call.hello()
		if head, _ := callwire.ParseHead(<-claim.said); head.BegunAfter != 0 || head.Exec != toHead {
			t.Errorf("of a call by a loan: %v", head)
		}
		claim.hearEnd()
		p.retire("test")
		w.ended(nil)
	})
}

func TestSchedulersAreToldOfTheAgent(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		w.run()
		p := w.stream()
		time.Sleep(time.Second)
		w.adapter.ready <- nil
		p.hear(helloText, "pull 2")
		claim, call := w.call(p, "a")
		call.hello()
		claim.hear(`head 200 cold whole "hello"`)
		claim.hearEnd()
		p.hear("pull 1 done a")
		time.Sleep(time.Second)
		synctest.Wait()
		r := p.report.Load()
		if r.GetCalls() != 1 || r.GetBroken() != 0 || r.GetReconnects() != 0 || r.GetBackedOff() {
			t.Errorf("after a call: %v", r)
		}
		if runtime.GOOS == "linux" && (r.GetCpuNs() == 0 || r.GetResidentBytes() < 1<<20) {
			t.Errorf("this process uses %v", r)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if r := p.report.Load(); !r.GetBackedOff() {
			t.Errorf("after 10 s without a call: %v", r)
		}
		p.lose()
		p = w.stream()
		p.hear(helloText, "pull 2")
		if h := p.hello.Load(); h.GetAgeNs() != 0 || h.GetReadyAfterNs() != 0 {
			t.Errorf("it says hello again as %v", h)
		}
		p.retire("test")
		w.ended(nil)
	})
}

func TestHelloTellsHowOldTheAgentIs(t *testing.T) {
	withHarness(t, nil, func(w *harness) {
		w.scheduler.deaf = true
		w.run()
		p := w.stream()
		p.hear(helloText)
		time.Sleep(time.Second)
		w.adapter.ready <- nil
		p.hear("pull 2")
		w.scheduler.deaf = false
		p.lose() // without having accepted the hello
		p = w.stream()
		p.hear(helloText, "pull 2")
		if h := p.hello.Load(); h.GetAgeNs() < int64(time.Second) || h.GetReadyAfterNs() != int64(time.Second) {
			t.Errorf("it says hello as %v", h)
		}
		p.retire("test")
		w.ended(nil)
	})
}
