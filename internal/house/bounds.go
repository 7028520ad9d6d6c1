package main

import "fmt"

// limits is what may be measured at most.
type limits struct {
	methods   int            // of one type
	guards    int            // ways of guarding the fields of one struct
	questions map[string]int // files to open
	question  int            // files to open for questions that are not listed
}

// bounds hold for everything that is not listed in known. No struct holds a
// context, and no interface has more than three methods.
var bounds = limits{
	methods:   30,
	guards:    1,
	questions: map[string]int{"POST": 9},
	question:  4,
}

// exceptions are things beyond a bound, with the reason, by figure.
type exceptions struct {
	methods, interfaces, contexts, guards map[string]string
}

// known lists what is beyond a bound today, with the reason: nothing. It fails, too,
// once something in it is within its bound, so that the list only shrinks.
var known exceptions

// judge says what is beyond a bound without being known, and what is known but
// within its bound.
func (f *figures) judge(bounds limits, known exceptions) []string {
	var problems []string
	hold := func(of string, beyond []figure, known map[string]string, remedy string) {
		found := map[string]bool{}
		for _, figure := range beyond {
			found[figure.name] = true
			if known[figure.name] == "" {
				problems = append(problems, fmt.Sprintf("%s{%s}=%d: %s", of, figure.name, figure.n, remedy))
			}
		}
		for name := range known {
			if !found[name] {
				problems = append(problems, fmt.Sprintf("%s{%s} is within its bound: remove it from known in internal/house/bounds.go", of, name))
			}
		}
	}
	hold("most_methods", over(f.methods, bounds.methods), known.methods,
		fmt.Sprintf("a type has at most %d methods: split it by subject", bounds.methods))
	hold("interfaces_over_3_methods", over(f.interfaces, 3), known.interfaces,
		"an interface has one to three methods: declare the part that each user needs")
	hold("contexts_in_structs", f.contexts, known.contexts,
		"a context is an argument: pass it to the methods that wait")
	hold("ways_of_guarding_one_value", over(f.guards, bounds.guards), known.guards,
		"the fields of a struct are guarded in one way: split it into values that each have their own")
	for _, question := range f.questions {
		bound := bounds.question
		if own, ok := bounds.questions[question.name]; ok {
			bound = own
		}
		if question.n > bound {
			problems = append(problems, fmt.Sprintf("files_to_open{%s}=%d: %d files must answer it", question.name, question.n, bound))
		}
	}
	return problems
}
