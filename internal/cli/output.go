package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

func checkOutput(output string, known ...string) error {
	if slices.Contains(known, output) {
		return nil
	}
	return usagef("-o %s is not known; write -o and one of %s", output, strings.Join(known, ", "))
}

// printObject prints an object for a program to read.
func (h *host) printObject(v any, output string) error {
	if output == "yaml" {
		text, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = h.Out.Write(text)
		return err
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(h.Out, "%s\n", text)
	return err
}
