package nodeagent

import (
	"log/slog"

	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
)

// OnlineCores is where the kernel lists the cores of the node.
const OnlineCores = "/sys/devices/system/cpu/online"

// CheckCores warns if the node agent may not run on all cores of the node: kubelets with the static CPU manager policy
// keep some for single pods. As many tickets as it has cores are right then, but the load counts the
// threads on the others, too, so the node is busy sooner. online is OnlineCores; without that file there is
// nothing to compare.
func CheckCores(mayUse int, online string, log *slog.Logger) {
	cores, err := cgroups.CountCores(online)
	if err == nil && cores != mayUse {
		log.Warn("this process may not run on all cores of the node: calls get tickets for its own, and the load that makes the node busy counts the threads of all",
			"cores", mayUse, "online", cores)
	}
}
