package board

import (
	"encoding/json"
	"fmt"

	"github.com/switchboard-run/switchboard/contract/adminv1"
)

// ask calls a tool for the visitor, who sees and changes what a private chat would, and decodes
// its answer.
func ask[T any](q *request, name string, fields map[string]any) (T, error) {
	return askFor[T](q, name, fields, q.person(), true)
}

// askFor is ask for a person. Without the household, only what is the person's own is used and
// changed.
func askFor[T any](
	q *request, name string, fields map[string]any, person string, household bool,
) (answer T, err error) {
	if fields == nil {
		fields = map[string]any{}
	}
	arguments, err := json.Marshal(fields)
	if err != nil {
		return answer, err
	}
	result, err := q.b.Manage.CallTool(q.Context(), &adminv1.CallToolRequest{
		Name: name, Arguments: arguments, Person: person, Household: person != "" && household,
	})
	if err != nil {
		return answer, err
	}
	if result.GetIsError() {
		return answer, toolError(result.GetContent())
	}
	if err := json.Unmarshal([]byte(result.GetContent()), &answer); err != nil {
		return answer, fmt.Errorf("read the answer of %s: %w", name, err)
	}
	return answer, nil
}

// do calls a tool and returns what it says to people.
func do(q *request, name string, fields map[string]any) (said string, err error) {
	answer, err := ask[struct{ Text, Summary string }](q, name, fields)
	if answer.Text == "" {
		answer.Text = answer.Summary
	}
	return q.translate(answer.Text), err
}
