// Package podagent is the agent that stands beside every instance: it pulls
// tickets from the scheduler, claims the calls at their gateways, runs them
// through an adapter and reports.
//
// Package core decides what the agent does; this package carries that out: it connects,
// sends and receives, runs calls, and tells the core what happened.
//
// It promises: a call reaches the function only after its claim was granted, and never
// twice, unless the function is idempotent and its request came with the ticket; no more
// calls run at a time than the function's concurrency; and an instance is used again only
// after a call with a complete answer, because after any other the function may still be
// busy. A draining agent says goodbye, finishes the calls that run, and ends when the
// gateways have the results and the scheduler has the goodbye.
//
// A lost scheduler does not touch the calls that run. The agent connects to another one as
// soon as there is evidence, tries for as long as it would wait for a call, but at least
// for a minute, says hello again and pulls as many tickets as it has room for. A lost
// gateway does not touch its calls either: they run to their end, and their answers are
// discarded. Only a gateway's own cancellation ends a call early.
//
// The agent of a spare instance has a runtime and no function. It announces itself when the
// runtime has loaded, waits for its scheduler to assign it to a function, hands the
// runtime the code, and is the agent of that function's instance from then on.
//
// An idle instance goes quiet after BackoffAfter: it closes its idle connections and gives
// memory back; its pull stays open, at the price of a ping every 5 s. After IdleTimeout
// more, it asks to leave. The scheduler decides, so that the last instance stays as long as
// the function's scaling says.
package podagent
