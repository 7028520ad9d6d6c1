package main

import "fmt"

// limits is what may be measured at most.
type limits struct {
	methods   int            // of one type
	guards    int            // ways of guarding the fields of one struct
	questions map[string]int // files to open
	question  int            // files to open for questions that are not listed
	boxes     int            // folders of pkg
	lonely    int            // packages with one importer
}

// bounds hold for everything that is not listed in known. No struct holds a context, no
// interface has more than three methods, no box imports against the order, and no name has a
// forbidden word or more than six homes.
var bounds = limits{
	methods:   30,
	guards:    1,
	questions: map[string]int{"POST": 9},
	question:  4,
	boxes:     12,
	lonely:    12,
}

// exceptions are things beyond a bound, with the reason, by figure.
type exceptions struct {
	methods, interfaces, contexts, guards map[string]string
}

// known lists what is beyond a bound today, with the reason: nothing. It fails, too, once
// something in it is within its bound, so that the list only shrinks.
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
		fmt.Sprintf("a type has at most %d methods for others: split it by subject", bounds.methods))
	hold("interfaces_over_3_methods", over(f.interfaces, 3), known.interfaces,
		"an interface has one to three methods: declare the part that each user needs")
	hold("contexts_in_structs", f.contexts, known.contexts,
		"a context is an argument: pass it to the methods that wait")
	hold("ways_of_guarding_one_value", over(f.guards, bounds.guards), known.guards,
		"the fields of a struct are guarded in one way: split it into values that each have their own")
	if n := len(f.boxes.names); n > bounds.boxes {
		problems = append(problems, fmt.Sprintf("boxes=%d: pkg has at most %d folders: put a package into the box that it is a part of", n, bounds.boxes))
	}
	if n := len(f.boxes.lonely); n > bounds.lonely {
		problems = append(problems, fmt.Sprintf("packages_with_one_importer=%d: at most %d: make one a part of its importer", n, bounds.lonely))
	}
	none := func(of string, all []figure, remedy string) {
		for _, figure := range all {
			problems = append(problems, fmt.Sprintf("%s{%s}=%d: %s (%s)", of, figure.name, figure.n, remedy, figure.what))
		}
	}
	none("imports_against_the_order", f.boxes.against, "a box imports only from boxes before it in internal/house/tree.go")
	none("names_with_too_many_homes", over(f.homes, maxHomes), "give all but six names that say their object")
	none("forbidden_words", f.forbidden, "the glossary has another word")
	none("subjects_over_72", f.subjects, "shorten the subject, and say the rest in the body")
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
