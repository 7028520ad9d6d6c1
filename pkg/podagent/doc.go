// Package podagent is the agent that stands beside every instance: it pulls
// tickets from the scheduler, claims the calls at their gateways, runs them
// through an adapter and reports.
//
// It promises: a call is handed to the function only after its claim was
// granted, and never twice; no more calls run at a time than the function's
// concurrency; and an instance is used again only after a call whose answer was
// complete, for after any other it is unknown what the function still does. An
// agent that gives up an instance says goodbye, finishes the calls that run, and
// ends when the gateways have their results and the scheduler its last words.
//
// A lost scheduler does not touch the calls that run. The agent tries to reach
// one for as long as it would wait for a call, but for a minute at least, says
// hello again and asks for as many calls as it has room for.
//
// An instance that waits in vain goes quiet after BackoffAfter (it closes its
// idle connections and gives memory back; its pull stands, which costs nothing)
// and asks to leave after IdleTimeout more. The scheduler decides, so that the
// last instance stays as long as the function says.
package podagent
