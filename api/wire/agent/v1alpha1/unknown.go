package agentwire

// A member that is not known leaves a oneof empty. IsUnknown tells whether that is so
// of a message that is one of the wire's: whoever gets one goes on, and counts it.
func IsUnknown(message any) bool {
	switch m := message.(type) {
	case *PullRequest:
		return m.GetKind() == nil
	case *PullReply:
		return m.GetKind() == nil
	case *AttemptRequest:
		return m.GetKind() == nil
	case *AttemptReply:
		return m.GetKind() == nil
	}
	return false
}
