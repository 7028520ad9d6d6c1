package scheduler

import (
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// totals are the counters of agents.
type totals struct {
	calls, broken, claimsRefused, reconnects uint64
	coreAsks, coreTimeouts                   uint64
	cpu                                      uint64 // in nanoseconds
}

// since is the increase since an earlier report. A counter that fell counts as unchanged,
// because agents are not trusted.
func (t totals) since(before totals) totals {
	more := func(now, then uint64) uint64 { return max(now, then) - then }
	return totals{
		calls: more(t.calls, before.calls), broken: more(t.broken, before.broken),
		claimsRefused: more(t.claimsRefused, before.claimsRefused), reconnects: more(t.reconnects, before.reconnects),
		coreAsks: more(t.coreAsks, before.coreAsks), coreTimeouts: more(t.coreTimeouts, before.coreTimeouts),
		cpu: more(t.cpu, before.cpu),
	}
}

func (t totals) plus(other totals) totals {
	return totals{
		calls: t.calls + other.calls, broken: t.broken + other.broken,
		claimsRefused: t.claimsRefused + other.claimsRefused, reconnects: t.reconnects + other.reconnects,
		coreAsks: t.coreAsks + other.coreAsks, coreTimeouts: t.coreTimeouts + other.coreTimeouts,
		cpu: t.cpu + other.cpu,
	}
}

// report is an agent's last report.
type report struct {
	totals
	resident  uint64
	backedOff bool
}

func reportOf(wire *agentwire.AgentReport) report {
	return report{
		totals: totals{
			calls: wire.GetCalls(), broken: wire.GetBroken(), claimsRefused: wire.GetClaimsRefused(),
			reconnects: wire.GetReconnects(), cpu: wire.GetCpuNs(),
			coreAsks: wire.GetCoreAsks(), coreTimeouts: wire.GetCoreTimeouts(),
		},
		resident: wire.GetResidentBytes(), backedOff: wire.GetBackedOff(),
	}
}

// agentReports are the reports of the agents of one function. The zero value is empty.
type agentReports struct {
	// sums are the totals while the function was served here, including agents that have
	// ended; nil if none has reported.
	sums *totals
	// last has the last report of each running instance; resident and backedOff are their
	// sums.
	last      map[invocation.CID]report
	resident  uint64
	backedOff int
}

// addReport applies a report. What an adopted instance counted before its first report here
// went to another scheduler.
func (r *agentReports) addReport(cid invocation.CID, now report, takenOver bool) {
	before, known := r.last[cid]
	if !known && takenOver {
		before = now
	}
	if r.sums == nil {
		r.sums = new(totals)
	}
	if r.last == nil {
		r.last = make(map[invocation.CID]report)
	}
	*r.sums = r.sums.plus(now.since(before.totals))
	r.subtract(cid)
	r.last[cid] = now
	r.resident += now.resident
	if now.backedOff {
		r.backedOff++
	}
}

// subtract removes the last report of an instance from the sums.
func (r *agentReports) subtract(cid invocation.CID) {
	last := r.last[cid]
	r.resident -= last.resident
	if last.backedOff {
		r.backedOff--
	}
	delete(r.last, cid)
}

// removeInstance drops an instance that has ended.
func (r *agentReports) removeInstance(cid invocation.CID) {
	if r.subtract(cid); len(r.last) == 0 {
		r.last = nil
	}
}

// dropInstances drops all instances, because another scheduler serves them now.
func (r *agentReports) dropInstances() { r.last, r.resident, r.backedOff = nil, 0, 0 }

// summary is the sum over all agents.
type summary struct {
	totals
	heard     bool
	resident  uint64
	backedOff int
}

func (r *agentReports) sum() summary {
	if r.sums == nil {
		return summary{}
	}
	return summary{totals: *r.sums, heard: true, resident: r.resident, backedOff: r.backedOff}
}

// recordReport applies the report of the instance's agent. That of an instance which was dropped, because it has
// ended or another scheduler has it, counts no more: its earlier reports are gone, and it would count again from 0.
func (p *pullStream) recordReport(wire *agentwire.AgentReport) {
	if wire == nil {
		return
	}
	u := p.unit
	u.mu.Lock()
	defer u.mu.Unlock()
	if in, there := p.shell.deps.Instances.Lookup(p.key); there {
		u.stats.reports.addReport(p.key.CID, reportOf(wire), in.Adopted)
	}
}
