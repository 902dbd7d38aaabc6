package metering

// Limit bounds what models may use in a day, or in a calendar month.
type Limit struct {
	Monthly      bool
	Agent, Model string // of which; empty: of all
	Person       string // for whom, by a name that only one person has; empty: for anyone
	Currency     string // of the money that it counts; empty: it counts tokens
	Amount       int64  // of tokens, or millionths of the currency
	// Name, Setting and Then are for texts: "today's limit of 5 tokens for all models",
	// where the owner set it, and "no model is asked until midnight".
	Name, Setting, Then string
	Refusal             string // to whom it refuses a completion; empty: made of these
}
