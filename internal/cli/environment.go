package cli

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

const envFileUsage = "`file` with KEY=VALUE on each line; repeatable, the last one wins"

// envChange sets a variable, or removes it.
type envChange struct {
	name, value string
	remove      bool
}

// parseEnvChange reads KEY=VALUE, or KEY-.
func parseEnvChange(text string) (envChange, error) {
	name, value, sets := strings.Cut(text, "=")
	if sets && name != "" {
		return envChange{name: name, value: value}, nil
	}
	if name, removes := strings.CutSuffix(text, "-"); removes && name != "" && !sets {
		return envChange{name: name, remove: true}, nil
	}
	return envChange{}, usagef("%q is neither KEY=VALUE nor KEY-; write for example APP_MODE=test, or APP_MODE- to remove it", text)
}

// changeEnv makes changes to variables. Of several for one name the last counts.
func changeEnv(env []v1alpha1.EnvVar, changes []envChange) []v1alpha1.EnvVar {
	env = slices.Clone(env)
	for _, c := range changes {
		at := slices.IndexFunc(env, func(v v1alpha1.EnvVar) bool { return v.Name == c.name })
		switch {
		case at >= 0 && c.remove:
			env = slices.Delete(env, at, at+1)
		case at >= 0:
			env[at] = v1alpha1.EnvVar{Name: c.name, Value: c.value}
		case !c.remove:
			env = append(env, v1alpha1.EnvVar{Name: c.name, Value: c.value})
		}
	}
	return env
}

// readEnvFiles reads the variables of files, one after the other.
func readEnvFiles(flag string, paths []string) ([]envChange, error) {
	var env []envChange
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, inputError(fmt.Errorf("%s: %w; check the path and its rights", flag, err))
		}
		of, err := parseEnvFile(string(text))
		if err != nil {
			return nil, inputError(fmt.Errorf("%s: %w", path, err))
		}
		env = append(env, of...)
	}
	return env, nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// parseEnvFile reads lines KEY=VALUE. Empty lines and those that begin with # are left
// out, export before a KEY is too. A value is the rest of the line without the white
// space around it, or what is between single quotes, or between double quotes, where
// \n, \t, \" and \\ stand for what they do in most languages. Nothing is expanded.
func parseEnvFile(text string) ([]envChange, error) {
	var env []envChange
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "export ")), "=")
		if name = strings.TrimSpace(name); !ok || !envName.MatchString(name) {
			return nil, fmt.Errorf("line %d is not KEY=VALUE; write for example APP_MODE=test", number)
		}
		value, err := unquote(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", number, name, err)
		}
		env = append(env, envChange{name: name, value: value})
	}
	return env, nil
}

var escapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\"`, `"`)

// unquote takes the quotes off a value.
func unquote(value string) (string, error) {
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return value, nil
	}
	quote := value[:1]
	inside, closed := strings.CutSuffix(value[1:], quote)
	switch {
	case !closed, quote == `"` && strings.HasSuffix(strings.ReplaceAll(inside, `\\`, ""), `\`):
		return "", fmt.Errorf("the quote %s is not closed at the end of the line; close it, and put comments into lines of their own", quote)
	case quote == `"`:
		return escapes.Replace(inside), nil
	}
	return inside, nil
}
