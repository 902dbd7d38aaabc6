package schema

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxProblems is how many problems one refusal lists.
const maxProblems = 5

// CheckArguments tells a model what is wrong with the arguments of its call of a tool;
// empty: nothing. A nil Schema accepts any JSON.
func (s *Schema) CheckArguments(tool string, raw []byte) string {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return fmt.Sprintf("The arguments of %s are not valid JSON (%v). "+
			"Call it again with a JSON object that fits its schema.", tool, err)
	}
	problems := s.Check(v)
	if len(problems) == 0 {
		return ""
	}
	lines := make([]string, 0, maxProblems)
	for _, p := range problems[:min(len(problems), maxProblems)] {
		lines = append(lines, p.String())
	}
	return fmt.Sprintf("The arguments of %s do not fit its schema: %s. Call it again with arguments that do.",
		tool, strings.Join(lines, "; "))
}
