package floor

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/queue"
)

func TestWhenIdleInstancesMayLeave(t *testing.T) {
	now := time.Unix(1000, 0)
	own := queue.LeavePolicy{Min: 1, IdleTimeout: 10 * time.Minute, KeepLast: time.Hour}
	for name, tt := range map[string]struct {
		upkeep   Upkeep
		want     queue.LeavePolicy
		releases bool
	}{
		"nothing is learnt": {upkeep: Upkeep{Scheduled: 3}, want: own},
		"the last one is kept until the plan changes": {
			upkeep: Upkeep{Planned: true, Kept: true, Change: now.Add(7 * time.Minute)},
			want:   queue.LeavePolicy{Min: 1, IdleTimeout: 10 * time.Minute, KeepLast: 9 * time.Minute},
		},
		"none is kept": {upkeep: Upkeep{Planned: true}, want: queue.LeavePolicy{Min: 1}, releases: true},
	} {
		if got := tt.upkeep.Leave(own, 2*time.Minute, now); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
		if got := tt.upkeep.ReleasesIdle(); got != tt.releases {
			t.Errorf("%s: releases idle instances: %v", name, got)
		}
	}
}

func TestTheLeastIsTheHighestOfAll(t *testing.T) {
	u := Upkeep{Scheduled: 3, Awaited: 1}
	if got := [...]int{u.Least(0), u.Least(5), (Upkeep{Awaited: 1}).Least(0)}; got != [...]int{3, 5, 1} {
		t.Errorf("the least are %v, want 3, 5, 1", got)
	}
}
