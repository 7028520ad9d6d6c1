package nodewire

// IsUnknown tells whether a message of the wire has a member that this release does not
// know, which leaves its oneof empty. A receiver counts such a message and goes on.
func IsUnknown(message any) bool {
	switch m := message.(type) {
	case *ComputeRequest:
		return m.GetKind() == nil
	case *ComputeReply:
		return m.GetKind() == nil
	}
	return false
}
