package callorder

// Class is what the calls of an instance get of the cores.
type Class int

// Classes.
const (
	// Standard calls need core tickets while the node is busy.
	Standard Class = iota
	// LatencyCritical calls begin at once, and their instances are never in the low band.
	LatencyCritical
	// Batch calls begin at once, and their instances are always in the low band.
	Batch
)

// Classes returns all classes.
func Classes() []Class { return []Class{Standard, LatencyCritical, Batch} }

// String returns the class as functions say it.
func (c Class) String() string {
	switch c {
	case LatencyCritical:
		return "LatencyCritical"
	case Batch:
		return "Batch"
	default:
		return "Standard"
	}
}

// takesTickets says whether calls of the class compete for tickets. Those of the others would gain
// nothing by one: they compute before or after all that have one.
func (c Class) takesTickets() bool { return c == Standard }
