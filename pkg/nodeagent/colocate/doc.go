// Package colocate decides how much of a node batch jobs may use while latency-critical work is
// there: how many cores are reserved, which jobs run and on which cores, and which are frozen.
//
// It is a second line. On a node of Windlass, batch work is in the low band, where the kernel
// gives it only what the others leave; that needs no decision. What priority cannot prevent,
// latency-critical work sees as waiting: its threads could run and do not, because a kernel gives
// a core back late, or because batch work has filled what cores share. So the core looks at two
// figures: how much of the cores latency-critical work uses, and for which share of the time some
// of it waited.
//
//   - Need is the usage divided by Grow: with 0.6, a core is reserved for each 0.6 that are used.
//   - With OnWait, cores are reserved only when work waits; without, whenever they are needed.
//   - A core returns once much less is needed, or with OnWait, once nothing has waited for long.
//     If work then waits again soon, the next return takes twice as long.
//   - If work waits although all is reserved that it needs, OnWait reserves one core after the other.
//     If it waits although no more may be reserved, the jobs that use most are frozen, one at a time,
//     and thawed one at a time once nothing waits and a core more than is needed is free.
//
// Waits do not say for whom: the service may wait for other programs, or its threads for one another.
// So the core doubts its steps, and the doubt is settled by giving back: that batch works on costs
// less than a service that waits, but not nothing, and nothing else tells a step that helps from a
// wait that falls by itself.
//
//   - While nothing helps, each step is twice as large as the last one, so all is kept back soon. To stop one
//     batch job of ten changes nothing where the others take what it left.
//   - If all is kept back for half of JudgeFor and work waits for more than 1-Helped of what it did before the
//     steps, they seem not to help. They are undone for as long, taken again, and undone again: a probe. If work does not wait longer while they are undone, they did not help: for a Rest
//     nothing is kept back. Rests double with each such verdict. A probe changes to and fro because waits also
//     change with what is asked of the work, from one second to the next.
//   - Too little looks as if it did not help. So there is a verdict only if nothing more could be kept back, or
//     if the work hardly waited for what was. Otherwise all is taken again, and the steps go on.
//   - A job that ends in a probe may take the cause of the waits with it, and then it seems that what kept it back
//     did not help. Such a probe has no verdict: all is taken again until the next one.
//   - If it does wait longer, they have helped, and are taken again at once. Later probes come after
//     ProveEvery, which doubles with each that finds so: work that waits for batch should not pay for
//     doubts. While nothing waits, nothing is in doubt.
//   - What has helped twice in a row may be more than is needed: reserved cores help, and jobs that are
//     frozen for what others cause do not. Probes give back half, and so on, and what changes nothing
//     stays given back.
//   - A rest ends early for a new cause: the work waits NewCause times as much or as little, by the time and
//     for what it uses. But a quarter of it passes in any case, as figures of busy machines change by themselves.
//
// A share of the time is a share of requests: those that arrive at random see a core that is late
// as often as it is late. A bound of 2 % thus keeps the 95th percentile clear of what batch does.
//
// The ETH report's controller is TwoState: the service has one core or two, and batch jobs run
// one in each of two blocks of cores, from queues of short, medium and long ones.
//
// Invariants, in whatever order events come:
//
//   - From Least to Most cores are reserved, and no running job is placed on one of them. At least
//     one core is left to batch jobs, unless blocks take them all.
//   - Only jobs that run are frozen. None is frozen for longer than LongestFreeze without looks
//     that find it necessary again, and it runs for ThawEvery at least between two freezes, or for half of
//     JudgeFor in a probe.
//   - What changes nothing while work waits is given back once all is kept back for JudgeFor. A probe gives back
//     for JudgeFor in all, unless a job has been frozen for LongestFreeze meanwhile. A rest lasts for a quarter
//     of Rest at least.
//   - Shared layout: no job is queued while fewer than Threads threads run. Blocks: no block that
//     batch may use is empty while a job is queued.
//   - After Stopped nothing is reserved beyond Least, and nothing is frozen.
//
// Source of TwoState, and of the 60 % that the defaults share with it: Cloud Computing
// Architecture semester project report, ETH Zurich, part 4.
//
// A Core is a value in memory. It holds no lock, reads no clock and starts nothing: Step takes
// an event and the time, and returns effects in the order to carry them out.
package colocate
