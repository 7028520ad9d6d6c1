package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// configOf reads an image's configuration from the last stage of a Dockerfile.
// args are the values of its arguments. It knows the instructions that our
// Dockerfiles use and refuses others, so that none is overlooked.
func configOf(text string, args map[string]string) (v1.Config, error) {
	var config v1.Config
	values := map[string]string{}
	expand := func(s string) string { return os.Expand(s, func(name string) string { return values[name] }) }
	for line := range strings.Lines(joinLines(text)) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		var err error
		switch instruction {
		case "", "COPY", "RUN":
		case "FROM":
			config, values = v1.Config{}, map[string]string{}
		case "ARG":
			for _, name := range strings.Fields(rest) {
				name, value, _ := strings.Cut(name, "=")
				if given, ok := args[name]; ok {
					value = given
				}
				values[name] = value
			}
		case "LABEL":
			config.Labels, err = labels(expand(rest))
		case "ENV":
			config.Env = append(config.Env, strings.Fields(expand(rest))...)
		case "USER":
			config.User = rest
		case "WORKDIR":
			config.WorkingDir = rest
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(rest), &config.Entrypoint)
		default:
			err = errors.New("the instruction is not known here")
		}
		if err != nil {
			return v1.Config{}, fmt.Errorf("%s: %w", instruction, err)
		}
	}
	return config, nil
}

// joinLines drops comments and joins lines that go on.
func joinLines(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		if begun, goesOn := strings.CutSuffix(line, "\\\n"); goesOn {
			line = begun + " "
		}
		kept.WriteString(line)
	}
	return kept.String()
}

var label = regexp.MustCompile(`^([\w.-]+)="([^"]*)"\s*`)

func labels(text string) (map[string]string, error) {
	found := map[string]string{}
	for text != "" {
		match := label.FindStringSubmatch(text)
		if match == nil {
			return nil, fmt.Errorf("%q does not begin with name=%q", text, "value")
		}
		if match[2] != "" {
			found[match[1]] = match[2]
		}
		text = text[len(match[0]):]
	}
	return found, nil
}
