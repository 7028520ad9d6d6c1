// House measures the shape of the product's code, prints name=value lines,
// and fails if a bound does not hold.
//
//	go run ./internal/house [folder of the module]
//
// The product is the Go code below cmd, pkg, api and internal, under every
// build tag, without tests, testdata and generated files.
//
// most_methods counts the exported methods of a type, and the exported functions
// of its package whose first parameter it is; of a type that is not exported, all
// methods. Those of what it embeds are not its own.
//
// interfaces_over_3_methods counts the methods of an interface and of the
// product's interfaces that it embeds. Those of generated code and of other
// modules do not count, because nobody here can make them smaller.
//
// contexts_in_structs counts struct fields of type context.Context.
//
// ways_of_guarding_one_value looks at one struct at a time. A struct that is
// a field of another, named or not, is a value of its own. Each of these is
// one way:
//
//   - each field that is a sync.Mutex or a sync.RWMutex, embedded or not;
//   - fields of types of sync/atomic, however many;
//   - fields that are a sync.Map, however many;
//   - fields that are a sync.Once, however many;
//   - fields of one goroutine, which their comment says ("only Run's
//     goroutine uses it", "of the goroutine that reads");
//   - fields under the lock of another struct, which their comment says ("the
//     agent's lock guards it"), for each such lock.
//
// Fields that nobody writes after the construction need no guard. A channel
// hands a value over or signals, and guards no field; nor does a
// sync.WaitGroup, or a sync.Cond, which comes with a lock that is counted.
// One way is what the bound allows: a struct with two splits into two values
// that each have their own.
//
// boxes, arrows_between_boxes and imports_against_the_order are of the folders of pkg; tests
// may import what they like.
//
// packages_with_one_importer counts packages of pkg and internal that one other package
// imports and no program does: each of these is a part of its importer, unless it has a
// picture of its own.
//
// names_with_too_many_homes counts names that more than six types and packages give to a
// function, other than those of the standard library's conventions.
//
// forbidden_words counts the names and texts with a word that the field has another one
// for; names.go lists both.
//
// subjects_over_72 counts commits whose subject is longer than that.
//
// files_to_open counts, by question, the files in the table "Files to open" of
// docs/architecture.md.
package main

import (
	"fmt"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	found, err := measure(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(2)
	}
	if found.subjects, err = longSubjects(root); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
	}
	found.print(os.Stdout)
	problems := found.judge(bounds, known)
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, "house:", problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}
