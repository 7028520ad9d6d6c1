package provisioner

import "time"

// Progress is how far the start of an instance has come; what is zero is not known.
type Progress struct {
	// Ordered is when it was ordered, Created when the runtime had made it, and
	// Sandboxed when its pod had a network.
	Ordered, Created, Sandboxed time.Time
}

// Progress says how far the start of an instance has come.
func (p *Provisioner) Progress(key Key) Progress {
	in, known := p.Look(key)
	if !known {
		return Progress{}
	}
	progress := Progress{Ordered: in.Ordered}
	if p.deps.Witness != nil {
		progress.Created, progress.Sandboxed = p.deps.Witness.Progress(key.FunctionUID, key.CID)
	}
	return progress
}
