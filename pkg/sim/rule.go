package sim

// Rule is a promise that is checked after every step or, if it says so, when
// everything has come to rest.
type Rule string

// What is promised about a call.
const (
	RuleStartsOnce         Rule = "a call starts once at most, unless its function is idempotent"
	RuleNoIsTrue           Rule = "an answer says no only if the function did not run"
	RuleNoStaysTrue        Rule = "a call whose answer said no never starts"
	RuleInTime             Rule = "a client is answered by the deadline and a second"
	RuleAnsweredOnce       Rule = "a client is answered once"
	RuleOKIsTrue           Rule = "a good answer is that of an execution of the call which has ended"
	RuleMaybeHasReason     Rule = "an answer says maybe only if an instance may have started the call"
	RuleUnwantedNotRun     Rule = "a call that nobody waits for is not granted any more"
	RuleThreeAttempts      Rule = "a call of an idempotent function is granted three times at most"
	RuleAttemptsCounted    Rule = "attempts are counted without a gap"
	RuleTokenOfTicket      Rule = "a claim is granted for the token of the ticket only"
	RuleTokenOnce          Rule = "a token is good for one claim"
	RuleHolderClaims       Rule = "a claim is granted only to an instance that was handed the ticket"
	RuleClaimFirst         Rule = "an instance starts only what it has claimed, or whose request came with the ticket"
	RuleOwnAttempt         Rule = "an instance starts only the attempt that it was granted"
	RuleReleasedNotRun     Rule = "an instance that gave a call back does not start it"
	RuleWithinCapacity     Rule = "an instance runs no more calls than its function's concurrency"
	RuleOfferedAgain       Rule = "a ticket that nobody claims is offered again every second or so"
	RuleAsksForRoom        Rule = "an instance asks for no more calls than it has room for"
	RuleLeavesIfAllowed    Rule = "an instance that is told to wait does not leave"
	RuleLeaverTakesNothing Rule = "an instance that leaves takes no call"
	RuleSpentNotCalled     Rule = "a function whose call broke is given no other"
	RuleEndsAfterCalls     Rule = "an instance ends when its calls have, and their results are delivered"
	RuleEndedIsForgotten   Rule = "a gateway forgets a call once it has ended"
	RuleUnansweredWaits    Rule = "a call that waits has no answer"
)

// What is promised about queues and owners.
const (
	RuleTicketInOnePlace    Rule = "a ticket is with one instance of a queue at a time"
	RuleQueueCounts         Rule = "what arrived in a queue and did not depart waits"
	RuleQueueBounded        Rule = "a queue that is full takes no other ticket"
	RuleServerHasTickets    Rule = "only who serves a function has its tickets"
	RuleAwakeWithTickets    Rule = "ticks look at a function in which calls wait"
	RuleServerHasInstances  Rule = "only who serves a function has its instances"
	RuleRefusedToo          Rule = "who lets go of a function refuses all its tickets"
	RuleRefusedForAReason   Rule = "a call is refused for what is so"
	RuleWithinLimits        Rule = "no more calls are let in than a function's limits allow"
	RuleTicketKept          Rule = "a queue keeps a ticket until it is finished with, withdrawn or too late"
	RuleTicketGone          Rule = "a queue has no ticket that was finished with or withdrawn"
	RuleOnlyWhatWaits       Rule = "a queue hands out only what waits"
	RuleNotTooLate          Rule = "a ticket is not handed out after its deadline"
	RuleNoMoreThanAsked     Rule = "an instance is handed no more tickets than it asked for and can hold"
	RuleFirstOfThoseThatAsk Rule = "of the instances that ask, the first in order is handed a ticket"
	RuleOldestFirst         Rule = "the oldest ticket is handed out first, unless the queue is hopeless"
	RuleLastStays           Rule = "the last instance of a function stays for longer"
	RuleLeaverHoldsNothing  Rule = "an instance that holds a ticket may not leave"
	RuleMeanIsPossible      Rule = "a mean execution time is within the function's timeout"
	RuleLostAreReplaced     Rule = "what is replaced is what was lost while it was needed"
	RuleBlockedIfInVain     Rule = "a function is blocked as long as its last order had no effect"
	RuleLetGoIdle           Rule = "only idle instances are let go"
	RuleSurplusGoes         Rule = "idle instances beyond the maximum are let go"
	RuleHoldAfterStandstill Rule = "who stood still orders nothing for a while"
	RuleTimeForHello        Rule = "nothing is ordered while instances that were taken over have time to say hello"
	RuleOrphansAreCautious  Rule = "while nobody confirms the ownership, there are at most a fifth more instances"
	RuleWithinMax           Rule = "a function has no more instances than it may have"
	RuleTakenOnlyIfFree     Rule = "a slot that somebody has is taken by nobody else"
	RuleGivenForGood        Rule = "a slot that is given away is its new owner's alone"
	RuleNothingAnew         Rule = "nobody writes into a slot what is written there already"
	RuleLostToAnother       Rule = "a slot is lost to another owner only"
	RuleStandIn             Rule = "a function whose scheduler is gone is served by another within 5 s"
	RuleEpochRises          Rule = "the epoch of a slot that somebody knows falls only with a history of etcd"
	RuleOneHolder           Rule = "a slot has one holder in one epoch"
	RuleNoFrenzy            Rule = "nobody does the same thing again and again without a pause"
	RuleHandedOver          Rule = "a scheduler that is told to stop gives its slots away"
)

// What is promised for the time after the faults.
const (
	RuleAllAnswered    Rule = "at rest, every invocation is answered"
	RuleNoTicketLeft   Rule = "at rest, no ticket is left"
	RuleOwned          Rule = "at rest, every slot has an owner"
	RuleOwnerServes    Rule = "at rest, the owner and nobody else serves a function"
	RuleSchedulerAgree Rule = "at rest, all schedulers name the same owner"
	RuleGatewayAgree   Rule = "at rest, all gateways turn to the owner"
	RuleServesAgain    Rule = "at rest, calls of every function are answered well"
	RuleInstancesThere Rule = "at rest, all instances wait at the owner"
)
