package sim

// Mutation is a rule that the simulated programs break, to see that the
// simulator notices.
type Mutation string

const (
	// NoMutation breaks nothing.
	NoMutation Mutation = ""
	// NoClaim lets an instance start the call of a ticket without asking its
	// gateway.
	NoClaim Mutation = "no-claim"
	// NoTokenCheck lets a gateway grant a claim whatever its token is.
	NoTokenCheck Mutation = "no-token-check"
	// RetryAfterClaim queues a call again whose instance was lost, even if
	// its function is not idempotent.
	RetryAfterClaim Mutation = "retry-after-claim"
	// InvertedEpoch believes the lower one of two epochs.
	InvertedEpoch Mutation = "inverted-epoch"
	// NoDrain lets a scheduler that is told to stop do so at once, without
	// handing over its slots.
	NoDrain Mutation = "no-drain"
	// TransportReplay sends a request to the function again when the
	// connection to it dies.
	TransportReplay Mutation = "transport-replay"
	// ForgottenCancel leaves the call of a client that has gone in the
	// gateway's table.
	ForgottenCancel Mutation = "forgotten-cancel"
	// EarlyAck answers a client when its call is claimed.
	EarlyAck Mutation = "early-ack"
	// NoDedupe enters a ticket that is offered again a second time.
	NoDedupe Mutation = "no-dedupe"
	// NoClamp takes the numbers that an instance tells as they are.
	NoClamp Mutation = "no-clamp"
)

// Mutations are all of them, NoMutation not counted.
func Mutations() []Mutation {
	return []Mutation{
		NoClaim, NoTokenCheck, RetryAfterClaim, InvertedEpoch, NoDrain,
		TransportReplay, ForgottenCancel, EarlyAck, NoDedupe, NoClamp,
	}
}
