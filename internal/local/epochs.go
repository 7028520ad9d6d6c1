package local

import (
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/etcd"
)

// risingEpochs are a Coordinator's epochs, above those of earlier runs. Its etcd starts empty each
// time, so its own epochs begin again, and with them would the names of instances, by which
// their logs are kept.
type risingEpochs struct {
	*etcd.Coordinator
	// before is the last epoch of the earlier runs.
	before uint64
}

// Epoch implements scheduler.Ownership.
func (e risingEpochs) Epoch(slot ownership.Slot) (uint64, bool) {
	epoch, held := e.Coordinator.Epoch(slot)
	if !held {
		return 0, false
	}
	return e.before + epoch, true
}
