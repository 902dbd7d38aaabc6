package control

// Usage is what completions cost together.
type Usage struct {
	Name      string `json:"name"` // the day, agent, model or session
	Calls     int64  `json:"calls"`
	Input     int64  `json:"input_tokens"`
	Output    int64  `json:"output_tokens"`
	Cached    int64  `json:"cached_tokens"`   // of the input: what the providers had in their caches
	Estimated int64  `json:"estimated_calls"` // of the calls: the provider did not say what they took
}
