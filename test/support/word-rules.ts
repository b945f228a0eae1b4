/** A phrase that texts for people do not use, and what they use instead. */
export interface WordRule {
  /** A space also matches a line break; case is ignored. */
  readonly pattern: RegExp;
  readonly instead: string;
  readonly reason: string;
  /** The rule finds this. */
  readonly bad: string;
  /** The rule does not find this, which has the replacement or the same words in a correct use. */
  readonly good: string;
}

const WORDY = "literary or translated; use the plain word";
const SUBJECT = "readers need to know who it is";
const TERM = "the field has a term for this";
const AMBIGUOUS = "the phrase has another, more common meaning";

/** Add a rule when a phrase has been removed everywhere. */
export const WORD_RULES: readonly WordRule[] = [
  {
    pattern: /\b(?:has|have|had) run out\b|\b(?:token|key|link|session|login|credential|certificate|it)s? runs? out\b/,
    instead: "expired, expires",
    reason: TERM,
    bad: "A session token that has run out is rejected.",
    good: "An expired session token is rejected. Memory does not run out.",
  },
  {
    pattern: /\banew\b/,
    instead: "again, or a verb with re-",
    reason: WORDY,
    bad: "The daemon enrolls anew.",
    good: "The daemon enrolls again, as a new node.",
  },
  {
    pattern: /\bby now\b/,
    instead: "at this point, or nothing",
    reason: WORDY,
    bad: "By now all of it is stored.",
    good: "Everything is saved at this point.",
  },
  {
    pattern: /\bjust now\b/,
    instead: "currently, at the moment",
    reason: WORDY,
    bad: "The provider cannot be reached just now.",
    good: "The provider cannot be reached at the moment.",
  },
  {
    pattern: /\bwho(?:m)?ever\b/,
    instead: "anyone who, the user who, the caller that",
    reason: SUBJECT,
    bad: "Whoever may create nodes is root there.",
    good: "Anyone who can create nodes gets root on that machine.",
  },
  {
    pattern: /\b(?:nobody|everybody|somebody)\b/,
    instead: "no one, everyone, someone, or the role: a user, a member, the operator",
    reason: SUBJECT,
    bad: "Until somebody starts it, nobody can call it.",
    good: "Until a user starts it, no one can call it.",
  },
  {
    pattern: /\b(?:is|are|was|were|be|been|being) told\b/,
    instead: "receives, gets, sees, is configured to",
    reason: WORDY,
    bad: "The caller is told when to retry.",
    good: "The caller receives the time of the next attempt.",
  },
  {
    pattern: /\btells? (?!(?:\w+ )?apart\b)|\btold (?:of|by|in|at|as|with)\b/,
    instead: "says, shows, reports, returns, contains, describes",
    reason: WORDY,
    bad: "The header tells which upstream it was.",
    good: "The header contains the upstream. To tell apart two nodes, use their IDs.",
  },
  {
    pattern: /\bbears?\b|\bbearing\b|\bborne?\b/,
    instead: "has, contains",
    reason: WORDY,
    bad: "Every response bears this header.",
    good: "Every response has this header. Send a bearer token.",
  },
  {
    pattern:
      /(?<!\b(?:any|some|none|all|part|most|more|much|many|one) )\bof (?:its|their|his|her|your|our|my) own(?=[.,;:)|]|\s*$| (?:and|or|that|to|from|for|in|on|over|at|with|by|is|are|which|as)\b)/,
    instead: "its own … before the noun",
    reason: WORDY,
    bad: "Each workload has a network of its own.",
    good: "Each workload has its own network. It exits before any of its own code runs.",
  },
  {
    pattern: /\b(?:an?|some|any|no) [\w-]+ of (?:ours|yours|theirs|hers|his|mine)\b/,
    instead: "your own …, one of your …s",
    reason: WORDY,
    bad: "It posts to an endpoint of yours.",
    good: "It posts to your own endpoint.",
  },
  {
    pattern: /\b(?:comes?|came|coming) of\b/,
    instead: "becomes of: what happens to; comes of: results from",
    reason: WORDY,
    bad: "So is every token that came of it.",
    good: "So is every token issued for it. The token comes from the issuer.",
  },
  {
    pattern: /\b(?:be|become|becomes|became) of\b/,
    instead: "what happens to",
    reason: WORDY,
    bad: "The page says what becomes of the field.",
    good: "The page says what happens to the field, which becomes optional.",
  },
  {
    pattern: /\b(?:goes|go|went|going) on\b/,
    instead: "continues, keeps running, is forwarded",
    reason: AMBIGUOUS,
    bad: "Running calls go on to their end.",
    good: "Running calls finish. Log in again before the next call.",
  },
  {
    pattern: /\b(?:works?|runs?|lives?) on(?=[.,;:)|]| (?:until|for a|through)\b)/,
    instead: "keeps working, keeps running",
    reason: WORDY,
    bad: "The old value works on until the overlap ends.",
    good: "The old value keeps working until the overlap ends. The agent runs on a node.",
  },
  {
    pattern: /\b(?:stands?|stood) (?:in|beside|there|still|behind|at|above|below|against)\b/,
    instead: "is in, is next to, is described in; stands still: does not change",
    reason: WORDY,
    bad: "What each role may do stands in the table.",
    good: "The table lists the permissions of each role. VM stands for virtual machine.",
  },
  {
    pattern: /\b(?:rests?|lies|lay) (?:in|on|beside|there|under)\b/,
    instead: "is stored in, is in",
    reason: WORDY,
    bad: "Its tokens rest in one file.",
    good: "Its tokens are stored in one file. The rest is in memory. It relies on Docker.",
  },
  {
    pattern: /\b(?:is|are|was|were|be|being) away\b/,
    instead: "is unavailable, is disconnected, is not responding",
    reason: WORDY,
    bad: "While the store is away, calls get 503.",
    good: "While the database is unavailable, calls get 503.",
  },
  {
    pattern: /\b(?:give|gives|gave|given|giving) (?:it |them |\w+ )?back\b/,
    instead: "release, return",
    reason: TERM,
    bad: "The machine is given back to the provider.",
    good: "The machine is released. Fall back to the other one.",
  },
  {
    pattern: /\b(?:leave|leaves|left|leaving) (?:\w+ ){0,4}away\b/,
    instead: "omit",
    reason: WORDY,
    bad: "It starts a session by leaving the session header away.",
    good: "It starts a session by omitting the header. Step away from it.",
  },
  {
    pattern: /(?<!\d )\bat once\b/,
    instead: "immediately; or at the same time, at a time",
    reason: AMBIGUOUS,
    bad: "Its token is revoked at once.",
    good: "Its token is revoked immediately. A client can open 10 at once.",
  },
  {
    pattern:
      /\b(?:the|an|this|its|every|each|error|stored|whole) answers?\b|\banswers? (?:with )?[1-5]\d\d\b|\b(?:is|are|was|were|be|been) answered\b/,
    instead: "response, returns, responds",
    reason: TERM,
    bad: "A node that cannot be reached answers 503.",
    good: "If the node cannot be reached, the response is 503. The model answers questions.",
  },
  {
    pattern: /\bgood (?:for (?:one|a|\w+ (?:use|days?|hours?|minutes?))|until|till|no more)\b/,
    instead: "valid for, valid until, can be used once",
    reason: TERM,
    bad: "The link is good for one use.",
    good: "The link can be used once. That is a good reason.",
  },
  {
    pattern: /\b(?:is|are|was|were|becomes?) void\b|\bvoids\b/,
    instead: "is invalid, is revoked, invalidates",
    reason: TERM,
    bad: "A new invitation voids the one before.",
    good: "A new invitation invalidates the previous one. Avoid this.",
  },
  {
    pattern:
      /\bthe (?:one|version|key|link|state|value|config|store|password|session|turn|answer|container) before\b(?=[.,;:)|]|\s*$| (?:is|are|was|has|takes?|again)\b)/,
    instead: "the previous …",
    reason: WORDY,
    bad: "The version before takes over.",
    good: "The previous version takes over. Update the version before you restart.",
  },
  {
    pattern: /\b(?:is|are|was|were|be|been) asked for\b/,
    instead: "is requested, is set",
    reason: WORDY,
    bad: "The version that is asked for is downloaded.",
    good: "The requested version is downloaded. The command asks for the name.",
  },
  {
    pattern: /\bwhere (?:there (?:is|are|was|were)|none|no [\w-]+ (?:is|are|was|were))\b/,
    instead: "if there is, if no …",
    reason: "where is for places; a condition starts with if",
    bad: "It installs Docker where there is none.",
    good: "It installs Docker if there is none. See where Docker is installed.",
  },
  {
    pattern: /\b(?:take|takes|took|taken|taking) up\b(?! (?:space|room|to)\b)/,
    instead: "applies, reads, uses, gets",
    reason: WORDY,
    bad: "The new config is taken up within a second.",
    good: "The new config is applied within a second.",
  },
  {
    pattern: /\bfor good\b(?! reasons?\b)/,
    instead: "permanently",
    reason: WORDY,
    bad: "The platform refuses this node for good.",
    good: "The platform permanently rejects this node, for good reasons.",
  },
  {
    pattern: /\bany more\b(?=[.,;:)|]|\s*$)/,
    instead: "no longer",
    reason: WORDY,
    bad: "The workload is not wanted any more.",
    good: "The workload is no longer wanted. Are there any more workloads?",
  },
  {
    pattern: /\b(?:hands?|handed|handing) (?:it |them )?on\b/,
    instead: "forwards, passes",
    reason: WORDY,
    bad: "The gateway hands it on to the engine.",
    good: "The gateway forwards it to the engine.",
  },
  {
    pattern: /\b(?:brings?|brought) (?:[\w']+ ){0,6}along\b/,
    instead: "includes, contains",
    reason: WORDY,
    bad: "The tar brings the daemon's builds along.",
    good: "The tar file includes the daemon's builds.",
  },
  {
    pattern: /\b(?:is|are|was|were|be) no (?:member|owner|key|object|harm|credential|file|error|reason)s?\b/,
    instead: "is not a …, does no harm",
    reason: WORDY,
    bad: "A user who is no member gets 404.",
    good: "A user who is not a member gets 404. There are no more keys.",
  },
  {
    pattern: /\bas (?:it|they) (?:comes?|came)\b/,
    instead: "unchanged, as received, while it arrives",
    reason: WORDY,
    bad: "The body is forwarded as it came.",
    good: "The body is forwarded unchanged.",
  },
  {
    pattern: /\bseldom\b|\btill\b|\bmend(?:s|ed)?\b|\bthe other way round\b/,
    instead: "rarely, until, fix, vice versa",
    reason: WORDY,
    bad: "Mend the field in `param`.",
    good: "Fix the field in `param`. The recommended value is rarely wrong; it is still the default.",
  },
];
