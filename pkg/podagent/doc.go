// Package podagent is the agent that stands beside every instance: it pulls
// tickets from the scheduler, claims the calls at their gateways, runs them
// through an adapter and reports.
//
// Package core decides what it does; this package carries that out: it connects,
// sends and receives, runs calls, and tells the core what came of it.
//
// It promises: a call is handed to the function only after its claim was
// granted, and never twice, unless the function is idempotent and its request
// came with the ticket; no more calls run at a time than the function's
// concurrency; and an instance is used again only after a call whose answer was
// complete, for after any other it is unknown what the function still does. An
// agent that gives up an instance says goodbye, finishes the calls that run, and
// ends when the gateways have their results and the scheduler its last words.
//
// A lost scheduler does not touch the calls that run. The agent turns to another
// one as soon as there is evidence, tries for as long as it would wait for a call,
// but for a minute at least, says hello again and asks for as many calls as it has
// room for. A lost gateway does not touch its calls either: they run to their end,
// and what they answer is dropped. Only a gateway that says so ends a call early.
//
// The agent of a spare instance has a runtime and no function. It says so when the
// runtime has loaded, waits for its scheduler to assign it to a function, hands the
// runtime what that needs, and is the agent of that function's instance from then on:
// once, and for good.
//
// An instance that waits in vain goes quiet after BackoffAfter (it closes its
// idle connections and gives memory back; its pull stands, at the price of a ping
// every 5 s) and asks to leave after IdleTimeout more. The scheduler decides, so
// that the last instance stays as long as the function says.
package podagent
