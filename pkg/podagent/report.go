package podagent

import (
	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// report is what was counted, and what this process uses now.
func report(r core.Report) *wirev1.AgentReport {
	cpu, resident := usage()
	return &wirev1.AgentReport{
		Calls: r.Calls, Broken: r.Broken, ClaimsRefused: r.ClaimsRefused, Reconnects: r.Reconnects,
		CpuNs: uint64(cpu), ResidentBytes: resident, BackedOff: r.BackedOff,
	}
}
