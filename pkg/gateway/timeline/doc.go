// Package timeline says when a call came how far, and so what its time was spent on:
//
//	admit    from its receipt until its ticket was offered: who calls, whether there is
//	         room, and reading a small body
//	queue    until an instance claimed it; of a call that was tried again, until the
//	         last claim
//	claim    until the function was handed it: the grant, the request and the way there
//	execute  until the function was done
//	return   until the answer was complete
//
// It promises, whatever instances say of their times: phases follow each other without
// a gap, none is negative, and they add up to the time from the receipt to the end of
// the call. A call that did not come to a phase lacks it and all after it. When a
// function began is an instance's word, which is believed within what was seen of it
// here. Of an instance that never said a word the whole time since its claim counts as
// execution, since that is what it may have been.
//
// A Timeline is a value. It reads no clock and holds no lock.
package timeline
