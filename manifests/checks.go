package manifests

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/robfig/cron/v3"

	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/near"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// reservedIDs may not be ids: they are topic prefixes of the kernel, the name of its
// tools, or keys beside ids in the configuration.
var reservedIDs = []string{"core", "kernel", "switchboard", "default", "hold", "total", "scout"}

const label = `[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?` // of a host name

var (
	lowerName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`) // a bound in it would take much memory
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	toolName  = regexp.MustCompile(`^[a-z][a-z0-9_]*/[A-Za-z0-9_-]+$`)
	hostName  = regexp.MustCompile(`^(\*\.)?(` + label + `\.)*` + label + `$`)
)

func isID(s string) bool { return len(s) <= 64 && lowerName.MatchString(s) }

func isCommandName(s string) bool { return len(s) <= 32 && lowerName.MatchString(s) }

// Checks are the checks of manifests, by their names in struct tags. The configuration
// shares them.
var Checks = strictyaml.Checks{
	"id":            checkID,
	"id_syntax":     checkIDSyntax,
	"text":          checkText,
	"version":       checkVersion,
	"semver_range":  checkRange,
	"env":           checkEnv,
	"env_name":      checkEnvName,
	"command":       checkCommand,
	"model":         checkModel,
	"model_pattern": checkModelPattern,
	"tool":          checkTool,
	"tool_pattern":  checkToolPattern,
	"effect":        checkEffect,
	"host":          checkHost,
	"path":          checkPath,
	"publish":       checkPublish,
	"subscribe":     checkSubscribe,
	"fired":         checkFired,
	"timezone":      checkTimezone,

	"cron_or_reference":     orReference(checkCron),
	"env_name_or_reference": orReference(checkEnvName),
	"every_or_reference":    orReference(checkEvery),
	"reference": orReference(func(s string) *strictyaml.Fault {
		return strictyaml.Faultf("%q is not a reference: write $config.<key>, or a port under listen", s)
	}),
}

func checkIDSyntax(s string) *strictyaml.Fault {
	if isID(s) {
		return nil
	}
	f := strictyaml.Faultf("%q must be lower-case letters, digits and underscores, a letter first, at most 64", s)
	guess := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, s), "_")
	if isID(guess) {
		f.Suggestion = guess
	}
	return f
}

func checkID(s string) *strictyaml.Fault {
	if f := checkIDSyntax(s); f != nil {
		return f
	}
	if topic.Reserved(s) || slices.Contains(reservedIDs, s) {
		return strictyaml.Faultf("%q is reserved for the kernel", s)
	}
	return nil
}

func checkText(s string) *strictyaml.Fault {
	if strings.TrimSpace(s) == "" {
		return strictyaml.Faultf("is empty")
	}
	if strings.ContainsAny(s, "\x00\n\r") {
		return strictyaml.Faultf("must be a single line")
	}
	return nil
}

func checkVersion(s string) *strictyaml.Fault {
	if _, err := semver.StrictNewVersion(s); err != nil {
		f := strictyaml.Faultf("%q is not a semantic version such as 1.0.0", s)
		if v, err := semver.NewVersion(s); err == nil {
			f.Suggestion = v.String()
		}
		return f
	}
	return nil
}

func checkRange(s string) *strictyaml.Fault {
	if _, err := semver.NewConstraint(s); err != nil {
		return strictyaml.Faultf("%q is not a version range such as >=0.1 or ^1.2", s)
	}
	return nil
}

func checkEnvName(s string) *strictyaml.Fault {
	if !envName.MatchString(s) {
		return strictyaml.Faultf("%q is not the name of an environment variable", s)
	}
	return nil
}

func checkEnv(s string) *strictyaml.Fault {
	name, value, _ := strings.Cut(s, "=")
	if strings.ContainsRune(value, 0) || !envName.MatchString(name) {
		return strictyaml.Faultf("%q is neither NAME (inherited) nor NAME=value", s)
	}
	return nil
}

func checkCommand(s string) *strictyaml.Fault {
	if !isCommandName(s) {
		f := strictyaml.Faultf("%q must be lower-case letters, digits and underscores, a letter first, at most 32", s)
		if bare := strings.ToLower(strings.TrimPrefix(s, "/")); isCommandName(bare) {
			f.Suggestion = bare
		}
		return f
	}
	if command.IsBuiltin(s) {
		return strictyaml.Faultf("/%s is a command of the kernel itself: choose another name", s)
	}
	return nil
}

func modelName(s string) bool {
	provider, name, ok := strings.Cut(s, "/")
	return ok && isID(provider) && name != "" && !strings.ContainsAny(name, " \t\n\r*\x00")
}

func checkModel(s string) *strictyaml.Fault {
	if s == "default" || s == "scout" || modelName(s) {
		return nil
	}
	return &strictyaml.Fault{
		Message:    fmt.Sprintf("%q is neither default, scout nor <provider>/<model>", s),
		Suggestion: near.Best(s, []string{"default", "scout"}),
	}
}

func checkModelPattern(s string) *strictyaml.Fault {
	if modelName(s) || strings.HasSuffix(s, "/*") && isID(strings.TrimSuffix(s, "/*")) {
		return nil
	}
	return strictyaml.Faultf("%q is neither <id>/<model> nor <id>/*", s)
}

func checkTool(s string) *strictyaml.Fault {
	if !toolName.MatchString(s) {
		return strictyaml.Faultf("%q is not a tool: write <extension>/<tool>", s)
	}
	return nil
}

func checkToolPattern(s string) *strictyaml.Fault {
	if toolName.MatchString(s) || strings.HasSuffix(s, "/*") && isID(strings.TrimSuffix(s, "/*")) {
		return nil
	}
	return strictyaml.Faultf("%q is neither <extension>/<tool> nor <extension>/*", s)
}

func checkEffect(s string) *strictyaml.Fault {
	permissions := kernel.EffectPermissions()
	if slices.Contains(permissions, s) {
		return nil
	}
	switch s {
	case "publish", "put", "delete", "append", "steer", "receipt":
		return strictyaml.Faultf("%q needs no grant: provides and publish imply it", s)
	}
	return &strictyaml.Fault{
		Message:    fmt.Sprintf("%q is not a grantable effect; these are: %s", s, strings.Join(permissions, ", ")),
		Suggestion: near.Best(s, permissions),
	}
}

func checkPath(s string) *strictyaml.Fault {
	if f := checkText(s); f != nil {
		return f
	}
	if strings.HasPrefix(s, "~") && s != "~" && !strings.HasPrefix(s, "~/") {
		return strictyaml.Faultf("%q is not a path: write /absolute, ~/in/the/home or relative to the manifest", s)
	}
	return nil
}

func checkHost(s string) *strictyaml.Fault {
	if name, ok := strings.CutPrefix(s, variable); ok && envName.MatchString(name) {
		return nil
	}
	if _, ok := parseReference(s); ok && len(s) > len(reference) {
		return nil
	}
	if _, err := netip.ParseAddrPort(s); err == nil {
		return nil
	}
	host := s
	if before, port, ok := strings.Cut(s, ":"); ok && !strings.Contains(port, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return hostFault(s)
		}
		host = before
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err == nil || host == "*" || hostName.MatchString(host) && len(host) < 254 {
		return nil
	}
	return hostFault(s)
}

func hostFault(s string) *strictyaml.Fault {
	f := strictyaml.Faultf("%q is not a host: write api.example.org, *.example.org, host:port, "+
		"$config.<key>, $env.<NAME> or * for any", s)
	if _, rest, ok := strings.Cut(s, "://"); ok {
		rest, _, _ = strings.Cut(rest, "/")
		if checkHost(rest) == nil {
			f.Suggestion = rest
		}
	}
	return f
}

// checkPattern checks syntax, and that a pattern under one of the kernel's
// prefixes can match one of the kernel's topics.
func checkPattern(s string) *strictyaml.Fault {
	if !topic.ValidPattern(s) {
		f := strictyaml.Faultf("%q is not a topic pattern: write segments of lower-case letters, digits and "+
			"underscores joined by dots, with .* only at the end", s)
		if lower := strings.ToLower(strings.ReplaceAll(s, "-", "_")); topic.ValidPattern(lower) {
			f.Suggestion = lower
		}
		return f
	}
	if !topic.Reserved(topic.Owner(s)) {
		return nil
	}
	kernel := topic.KernelPatterns()
	if slices.ContainsFunc(kernel, func(k string) bool { return topic.Overlap(k, s) }) {
		return nil
	}
	return &strictyaml.Fault{
		Message:    fmt.Sprintf("%q is not a topic of the kernel, which owns %s.*", s, topic.Owner(s)),
		Suggestion: near.Best(s, kernel),
	}
}

func checkSubscribe(s string) *strictyaml.Fault { return checkPattern(s) }

func checkPublish(s string) *strictyaml.Fault {
	if f := checkPattern(s); f != nil {
		return f
	}
	if s == "agent.output" {
		return strictyaml.Faultf("agent.output needs no grant: every agent may publish it, and only agents may")
	}
	if k := topic.KernelOnly(s); k != "" {
		return strictyaml.Faultf("%q cannot be granted: only the kernel publishes %s", s, k)
	}
	return nil
}

func checkFired(s string) *strictyaml.Fault {
	if !topic.ValidTopic(s) {
		if strings.Contains(s, "*") && topic.ValidPattern(s) {
			return strictyaml.Faultf("%q is a pattern: a schedule publishes one topic", s)
		}
		return checkPattern(s)
	}
	return checkPublish(s)
}

func checkCron(s string) *strictyaml.Fault {
	if strings.HasPrefix(s, "TZ=") || strings.HasPrefix(s, "CRON_TZ=") {
		return strictyaml.Faultf("set the time zone in timezone, not in the expression")
	}
	schedule, err := cron.ParseStandard(s)
	if err != nil {
		return strictyaml.Faultf("%q is not a cron expression such as \"0 3 * * *\": %s", s, err)
	}
	if schedule.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return strictyaml.Faultf("%q never fires", s)
	}
	return nil
}

func checkTimezone(s string) *strictyaml.Fault {
	if s == "" || s == "Local" {
		return strictyaml.Faultf("%q is not a time zone: write a name such as Europe/Berlin", s)
	}
	if _, err := time.LoadLocation(s); err != nil {
		return strictyaml.Faultf("%q is not a known time zone: write a name such as Europe/Berlin", s)
	}
	return nil
}
