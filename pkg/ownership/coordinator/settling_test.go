package coordinator

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

func TestMembersThatComeDelayTheFirstClaimButNotForEver(t *testing.T) {
	begin := time.Unix(1000, 0)
	var c settling
	c.start(begin, settle)
	now := begin
	for range 100 {
		now = now.Add(settle / 2)
		c.extend(now, settle)
	}
	if over := c.until.Sub(begin); over <= settle || over > settleTimes*settle {
		t.Errorf("the first claim is after %v, want more than %v and at most %v", over, settle, settleTimes*settle)
	}
	c.start(begin, settle)
	before := c.until
	c.extend(before, settle)
	if c.until != before {
		t.Error("a member that comes when claims are made already stops them")
	}
}

func TestAfterSilenceOthersHaveTimeToComeBack(t *testing.T) {
	now := time.Unix(1000, 0)
	var c settling
	c.recordNews(now, ttl)
	c.recordNews(now.Add(ttl*2/3), ttl)
	if !c.until.IsZero() {
		t.Error("what is heard each third of a lease's time is taken for silence")
	}
	now = now.Add(2 * ttl)
	c.recordNews(now, ttl)
	if want := now.Add(returnGrace); c.until != want {
		t.Errorf("it waits until %v, want %v", c.until, want)
	}
}

func TestAnAllowanceIsSpentAndComesBack(t *testing.T) {
	now := time.Unix(1000, 0)
	busy := func(slot ownership.Slot) bool { return slot == 1 }
	var a handoffBudget
	a.refill(now)
	a.spend([]Op{{Key: Key{Slot: 1}}, {Key: Key{Slot: 2}}, {Key: Key{Slot: 3}}}, busy)
	a.refill(now.Add(handoffInterval / 2))
	if a.busy != busyHandoffs-1 || a.idle != idleHandoffs-2 {
		t.Errorf("left are %d and %d", a.busy, a.idle)
	}
	a.refill(now.Add(handoffInterval))
	if a.busy != busyHandoffs || a.idle != idleHandoffs {
		t.Errorf("after its time %d and %d may be given", a.busy, a.idle)
	}
}
