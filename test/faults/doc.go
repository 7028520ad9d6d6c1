// Command faults breaks a Windlass that is made of real programs, and says
// whether it kept its promises: the fault lab.
//
// Each row of its table is one fault of docs/reliability.md. It is put upon a
// Windlass under load, and taken back; then package verdict compares what the
// callers were told with what the functions' ledger says was executed, and the
// row's own expectations with what happened. A row fails for a promise that was
// broken, never for being slow: times are printed.
//
//	go run ./test/faults                    every row
//	go run ./test/faults -rows F2,F21-F24   some
//	go run ./test/faults -list              what there is
//	go run ./test/faults -figures           the figures, with larger counts
//
// It needs Linux, root, iptables, and the programs of make cluster-binaries. It
// leaves nothing behind, however it ends; see package lab.
package main
