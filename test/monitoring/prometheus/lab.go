package prometheus

import "github.com/windlass-dev/windlass/test/lab"

// LabTargets are the members of a lab that are scraped, with the labels that the
// ServiceMonitor of a release gives.
func LabTargets(l *lab.Lab) []Target {
	var targets []Target
	for component, members := range map[string][]*lab.Member{"scheduler": l.Schedulers, "gateway": l.Gateways, "controller": {l.Controller}} {
		for _, m := range members {
			targets = append(targets, Target{
				Addr: l.OpsAddr(m), Labels: map[string]string{"namespace": "windlass", "pod": m.Name, "component": component},
			})
		}
	}
	return targets
}
