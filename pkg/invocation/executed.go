package invocation

// Executed says whether the function ran, as far as the sender of the answer can know. Every
// answer of the gateway carries it, and No is never wrong.
type Executed string

const (
	// ExecutedNo says that the function provably did not run: the call may
	// be repeated blindly.
	ExecutedNo Executed = "no"
	// ExecutedMaybe says that an instance had claimed the call and its
	// result was lost.
	ExecutedMaybe Executed = "maybe"
	// ExecutedYes says that the function ran and this is its answer.
	ExecutedYes Executed = "yes"
)
