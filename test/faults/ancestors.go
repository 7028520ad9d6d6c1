package main

import (
	"context"
	"fmt"
	"slices"
)

// ancestorBug is a bug of OpenWhisk's scheduler for the same algorithm, from its
// issues or its source, and the row that would fail if Windlass had it.
type ancestorBug struct {
	name, what, row string
}

var ancestorBugs = []ancestorBug{
	{"handed_out_and_lost", "what a container fetched is gone if the reply or the container is", "F46"},
	{"acknowledged_before_it_ran", "what a scheduler held in memory is gone with it", "F3"},
	{"stale_owner_serves_on", "leaders have no epoch, so one that stood still goes on as if nothing had happened", "F21"},
	{"outage_of_etcd", "a lease that ended while etcd was away is never got back (5286)", "F26b"},
	{"owner_without_a_queue", "etcd names an owner that does not serve, for ever (5301)", "F31b"},
	{"forwards_to_itself", "a scheduler passes calls on to itself without end (5250)", "F49"},
	{"lease_not_found", "an owner whose lease is gone vanishes (5485)", "F30"},
	{"late_keepalive", "a pause of the process removes all its queues", "F24"},
}

// ancestors runs the rows that guard against the ancestor's bugs.
func ancestors(ctx context.Context, r *runner) error {
	guarded := 0
	for _, bug := range ancestorBugs {
		all := table()
		i := slices.IndexFunc(all, func(row row) bool { return row.id == bug.row })
		if i < 0 {
			return fmt.Errorf("no row is named %q", bug.row)
		}
		found, err := r.rows(ctx, all[i:i+1])
		if err != nil {
			return err
		}
		r.figure("ancestor_"+bug.name, "%s row=%s", map[bool]string{true: "guarded", false: "NOT"}[found.status() == 0], bug.row)
		if found.status() == 0 {
			guarded++
		} else {
			r.broken = true
		}
	}
	r.figure("ancestor_bugs_guarded", "%d/%d", guarded, len(ancestorBugs))
	return nil
}
